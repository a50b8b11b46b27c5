/*
 * version.c - tutti version: what this build is and has.
 */
#include "cli/cli.h"
#include "cuda/load.h"
#include "data/decode.h"
#include <stdio.h>
#include <string.h>

#ifdef TUTTI_HAVE_MICROHTTPD
#define HTTP "yes"
#else
#define HTTP "no (tutti serve-model: install libmicrohttpd-dev and build again)"
#endif

static int run(const cli_args *args)
{
    char cuda[512], all[2048];
    tti_text decoders = {0};
    tti_cuda_describe(cuda, sizeof(cuda)); // what it finds on this machine, now
    tti_decoders_describe(&decoders);
    snprintf(all, sizeof(all), "%s%slibmicrohttpd: " HTTP "\ncuda: %s\n", tt_version_text(),
             decoders.s != NULL ? decoders.s : "", cuda);
    tti_text_free(&decoders);
    const char *s = all;
    if (!args->json) {
        cli_print(s);
        return CLI_OK;
    }
    tti_text t = {0};
    for (bool first = true; *s != '\0'; first = false) { // "key: value" lines
        char key[64], value[512];
        const char *colon = strstr(s, ": "), *end = strchr(s, '\n');
        snprintf(key, sizeof(key), "%.*s", (int)(colon - s), s);
        snprintf(value, sizeof(value), "%.*s", (int)(end - colon - 2), colon + 2);
        tti_text_add(&t, first ? "{" : ", ");
        tti_text_json(&t, key);
        tti_text_add(&t, ": ");
        tti_text_json(&t, value);
        s = end + 1;
    }
    tti_text_add(&t, "}\n");
    return cli_print_text(&t) ? CLI_OK : CLI_FAILED;
}

const cli_verb cli_version = {
    .name = "version",
    .summary = "show the version, instruction sets and libraries of this build",
    .help = "For a missing feature, prints what to install to get it.\n",
    .flags = "json",
    .run = run,
};
