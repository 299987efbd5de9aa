# SPDX-License-Identifier: GPL-3.0-or-later
# KERNEL<<<HOW>>>(ARGUMENTS) is launch(KERNEL, HOW, ARGUMENTS), where all but the arguments is in one line.
s/\([a-z_]*\)<<<\(.*\)>>>(/launch(\1, \2, /
