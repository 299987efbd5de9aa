/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pins.h"

#include "schedule.h"

bool pins_is_phase_gap(const struct problem *problem, uint32_t access)
{
    const struct access *a = &problem->accesses[access];
    const struct atp_step *steps = problem->model->steps;
    bool is_forward = a->step == ATP_NONE || steps[a->step].phase == ATP_PHASE_FORWARD;
    return is_forward && a->has_next &&
           steps[problem->accesses[access + 1].step].phase != ATP_PHASE_FORWARD;
}

bool pins_find(const struct problem *problem, uint32_t access, uint8_t *out_choice)
{
    const struct access *a = &problem->accesses[access];
    enum profile_pin pin = problem->profile->pins[a->tensor];
    if (pin == PROFILE_PIN_NONE || !a->has_next ||
        (pin != PROFILE_PIN_KEEP && !pins_is_phase_gap(problem, access))) {
        return false;
    }
    *out_choice = pin == PROFILE_PIN_KEEP   ? CHOICE_KEEP
                  : pin == PROFILE_PIN_SWAP ? CHOICE_SWAP
                                            : CHOICE_RECOMPUTE;
    return true;
}
