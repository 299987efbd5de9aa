/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_api.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "fail.h"

struct symbol {
    const char *name;
    size_t offset; /* in struct cuda_api */
    bool is_required;
};

/* In two steps, so that cuda.h has renamed the function before its name becomes text. */
#define TEXT(name)    TEXT_OF(name)
#define TEXT_OF(name) #name

static const struct symbol symbols[] = {
#define REQUIRED(name) {TEXT(name), offsetof(struct cuda_api, name), true},
#define OPTIONAL(name) {TEXT(name), offsetof(struct cuda_api, name), false},
    CUDA_API_REQUIRED(REQUIRED) CUDA_API_GRAPHS(OPTIONAL)
#undef OPTIONAL
#undef REQUIRED
};

/* Recent headers rename cuEventElapsedTime to a version that drivers before 12.8 do not have; the
 * older one takes the same arguments. No other version may stand in for another. */
static void *find(void *library, const char *name)
{
    void *address = dlsym(library, name);
    if (address == NULL && strcmp(name, "cuEventElapsedTime_v2") == 0) {
        address = dlsym(library, "cuEventElapsedTime");
    }
    return address;
}

enum atp_status cuda_api_load(const char *library, struct cuda_api *out_api, struct atp_error *err)
{
    memset(out_api, 0, sizeof(*out_api));
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *why = dlerror();
        return atp_fail(err, ATP_ERR_UNSUPPORTED, "CUDA: no driver: %s",
                        why != NULL ? why : library);
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = find(handle, symbols[i].name);
        if (address == NULL && symbols[i].is_required) {
            enum atp_status status = atp_fail(
                err, ATP_ERR_UNSUPPORTED, "CUDA: the driver %s is too old: it has no function %s",
                library, symbols[i].name);
            memset(out_api, 0, sizeof(*out_api));
            (void)dlclose(handle);
            return status;
        }
        /* C has no cast from an object's address to a function's. */
        memcpy((char *)out_api + symbols[i].offset, &address, sizeof(address));
    }
    return ATP_OK;
}

static enum atp_status status_of(CUresult result)
{
    bool is_capture_error = result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
                            result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    if (result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_STUB_LIBRARY || is_capture_error) {
        return ATP_ERR_UNSUPPORTED;
    }
    return result == CUDA_ERROR_OUT_OF_MEMORY ? ATP_ERR_NO_MEMORY : ATP_ERR_DEVICE;
}

enum atp_status cuda_api_fail(const struct cuda_api *api, CUresult result, const char *call,
                              struct atp_error *err)
{
    const char *name = NULL, *text = NULL;
    if (api->cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) {
        name = "unknown error";
    }
    if (api->cuGetErrorString(result, &text) != CUDA_SUCCESS || text == NULL) {
        text = "the driver has no text for it";
    }
    return atp_fail(err, status_of(result), "CUDA: %s: %s %d (%s)", call, name, (int)result, text);
}
