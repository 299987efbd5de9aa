/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * SANITIZED is 1 where the address sanitizer makes everything several times slower: tests that do
 * a lot do less there.
 */
#ifndef SANITIZED_H
#define SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
