/*
 * cli_inspect.c - tutti inspect and tutti convert, as a user types them.
 */
#include "../checkpoint.h"
#include "../command.h"
#include "save/safetensors.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#define SCALE 3

static char *path_of(const char *name)
{
    static char path[8][400];
    static int next;
    char *p = path[next++ % 8];
    snprintf(p, sizeof(path[0]), "%s/%s", test_folder(), name);
    return p;
}

static void save(const char *name, int64_t step)
{
    static tti_snapshot s;
    tt_ctx *ctx = test_ctx();
    test_snapshot_make(&s, step, SCALE);
    CHECK_OK(tti_checkpoint_write(ctx, path_of(name), &s));
    test_snapshot_free(&s);
    CHECK_OK(tt_close(ctx));
}

static void damage(const char *name)
{
    FILE *f = fopen(path_of(name), "r+b");
    CHECK(f != NULL && fseek(f, -1, SEEK_END) == 0);
    int c = fgetc(f);
    CHECK(fseek(f, -1, SEEK_END) == 0 && fputc(c ^ 1, f) >= 0 && fclose(f) == 0);
}

static json_t *json_out(void)
{
    json_error_t error;
    json_t *v = json_loads(command_out, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(v != NULL, "%s: %s", error.text, command_out);
    return v;
}

TEST(inspect_a_checkpoint)
{
    save("m.tutti", 2017);
    CHECK_INT(command_run("inspect m.tutti"), 0);
    CHECK_HAS(command_out, "step        2017");
    CHECK_HAS(command_out, "in epoch 517: 355 of 1000"); // 2017 * 256 + 3
    CHECK_HAS(command_out, "weights.safetensors: 3 tensors, 72 bytes");
    CHECK_HAS(command_out, "  dense.weight  F32      [6, 1]            24");
    CHECK_HAS(command_out, "  ids           I32      [9, 1]            36");
    CHECK_HAS(command_out, "optimizer.safetensors: 3 tensors");
    CHECK_STR(command_err, "");

    CHECK_INT(command_run("inspect m.tutti --json"), 0);
    json_t *v = json_out();
    CHECK_INT(json_integer_value(json_object_get(v, "step")), 2017);
    CHECK_STR(json_string_value(json_object_get(v, "job")),
              "name: x\n# \"quoted\"\ttab \xc3\xa9\n");
    json_t *files = json_object_get(v, "files");
    CHECK_INT(json_array_size(files), 2);
    json_t *tensors = json_object_get(json_array_get(files, 0), "tensors");
    CHECK_INT(json_array_size(tensors), 3);
    CHECK_STR(json_string_value(json_object_get(json_array_get(tensors, 0), "name")), "dense.bias");
    json_decref(v);

    damage("m.tutti/weights.safetensors");
    CHECK_INT(command_run("inspect m.tutti"), 1);
    CHECK_STR(command_out, "");
    CHECK_HAS(command_err, "weights.safetensors: its checksum is wrong");
}

TEST(inspect_a_run)
{
    save("runs/x-001/checkpoints/step-9", 9);
    save("runs/x-001/checkpoints/step-10", 10);
    command_write("runs/x-001/checkpoints/best", "step-9\n");
    CHECK_INT(command_run("inspect runs/x-001"), 0);
    CHECK_HAS(command_out, "step-10          complete\n");
    CHECK_HAS(command_out, "step-9           complete, best\n");
    CHECK(strstr(command_out, "step-10") < strstr(command_out, "step-9 "));
    command_write("x.yaml", "name: x\nmodel: [{dense: 1}]\n");
    CHECK_INT(command_run("inspect x.yaml"), 0);
    CHECK_HAS(command_out, "runs/x-001/checkpoints: checkpoints");
    CHECK_INT(command_run("inspect x"), 0); // by the job's name
    CHECK_HAS(command_out, "runs/x-001/checkpoints: checkpoints");

    damage("runs/x-001/checkpoints/step-10/manifest.json");
    CHECK_INT(command_run("inspect runs/x-001 --json"), 1);
    json_t *v = json_out(), *list = json_object_get(v, "checkpoints");
    CHECK_INT(json_array_size(list), 2);
    CHECK_HAS(json_string_value(json_object_get(json_array_get(list, 0), "damaged")),
              "manifest.json");
    CHECK(json_is_null(json_object_get(json_array_get(list, 1), "damaged")));
    CHECK(json_is_true(json_object_get(json_array_get(list, 1), "best")));
    json_decref(v);
}

// A file with what Tutti has no type for, and with names that would play with a terminal.
static void write_foreign(void)
{
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"a\\u001b[31m\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[0,4]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}";
    unsigned char all[8 + sizeof(header) - 1 + 8] = {(unsigned char)(sizeof(header) - 1)};
    memcpy(all + 8, header, sizeof(header) - 1);
    FILE *f = fopen(path_of("f.safetensors"), "wb");
    CHECK(f != NULL && fwrite(all, 1, sizeof(all), f) == sizeof(all) && fclose(f) == 0);
}

TEST(inspect_a_file)
{
    write_foreign();
    CHECK_INT(command_run("inspect f.safetensors"), 0);
    CHECK_HAS(command_out, "metadata: format = pt");
    CHECK_HAS(command_out, "a?[31m  F8_E4M3  [2, 2]");
    CHECK(strchr(command_out, 0x1b) == NULL);
    CHECK_INT(command_run("inspect nothing"), 1);
    CHECK_HAS(command_err, "there is no run 'nothing'");
    CHECK_INT(command_run("inspect /no/such/file.safetensors"), 1);
    CHECK_HAS(command_err, "error: there is no file or folder '/no/such/file.safetensors'\n");
    CHECK_INT(command_run("inspect none.safetensors"), 1);
    CHECK_HAS(command_err, "error: there is no file or folder 'none.safetensors'\n");
    CHECK_INT(command_run("inspect ."), 1);
    CHECK_HAS(command_err, "there is no checkpoint in '.'");
    CHECK_INT(command_run("inspect"), 2);
    command_write("text", "this is no such file at all");
    CHECK_INT(command_run("inspect text"), 1);
    CHECK_HAS(command_err, "text: is not a safetensors file");
}

TEST(convert_a_checkpoint)
{
    tt_ctx *ctx = test_ctx();
    tti_safetensors f;
    save("run/step-3", 3);
    save("else/x-001/checkpoints/step-4", 4);
    CHECK_INT(command_run("convert run out.safetensors --map=dense.*=fc.*"), 0);
    CHECK_HAS(command_out, "out.safetensors: 3 tensors\n");
    command_ok("convert x out.safetensors --runs else");
    command_ok("convert x-001 out.safetensors --runs else --only *.weight --json");
    command_write("job.yaml", "name: x\nmodel: [{dense: 1}]\noutput: {dir: else}\n");
    command_ok("convert job.yaml out.safetensors --map=dense.*=fc.*");
    CHECK_HAS(command_out, "out.safetensors: 3 tensors\n");
    CHECK_INT(command_run("convert x out.safetensors"), 1);
    CHECK_HAS(command_err, "there is no run 'x' here or in 'runs'");
    CHECK_INT(command_run("convert job.yaml out.safetensors --runs nowhere"), 1);
    CHECK_HAS(command_err, "there is no run of 'x' in 'nowhere'; train it first");
    CHECK_OK(tti_safetensors_open(ctx, path_of("out.safetensors"), &f));
    CHECK_INT(f.n, 3);
    CHECK(tti_safetensors_find(&f, "fc.weight") >= 0 && tti_safetensors_find(&f, "ids") >= 0);
    tti_safetensors_close(&f);

    CHECK_INT(command_run("convert out.safetensors out.safetensors --only fc.* --json"), 0);
    json_t *v = json_out();
    CHECK_INT(json_integer_value(json_object_get(v, "tensors")), 2);
    CHECK_INT(json_integer_value(json_object_get(v, "left_out")), 1);
    json_decref(v);
    CHECK_INT(command_run("convert out.safetensors x --only nothing"), 1);
    CHECK_HAS(command_err, "none of its 2 tensors is left");
    CHECK_INT(command_run("convert out.safetensors x --map *=one*two*"), 1);
    CHECK_HAS(command_err, "needs one * on both sides");
    CHECK_INT(command_run("convert out.safetensors x --map fc.bias=fc.weight"), 1);
    CHECK_HAS(command_err, "two tensors have the name 'fc.weight'");
    CHECK(!tti_file_exists(path_of("x")));
    CHECK_INT(command_run("convert out.safetensors"), 2);

    write_foreign();
    CHECK_INT(command_run("convert f.safetensors x"), 1);
    CHECK_HAS(command_err, "has type F8_E4M3, which Tutti does not support");
    CHECK_INT(command_run("convert f.safetensors x --partial"), 0);
    CHECK_HAS(command_out, "x: 1 tensor, 1 left out\n");
    CHECK_OK(tti_safetensors_open(ctx, path_of("x"), &f));
    CHECK_STR(f.metadata[1], "pt"); // kept
    tti_safetensors_close(&f);
    CHECK_OK(tt_close(ctx));
}

TEST(convert_refuses_formats_it_cannot_write)
{
    static const char *const names[] = {"m.keras", "m.pt", "dir.d/m.pb", "m.tutti.h5",
                                        "m.Safetensor"};
    char line[256];
    save("run/step-3", 3);
    for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++) {
        snprintf(line, sizeof(line), "convert run %s", names[i]);
        ck_assert_msg(command_run(line) == 2, "%s: %s%s", line, command_out, command_err);
        CHECK_HAS(command_err, names[i]);
        CHECK_HAS(command_err, ".safetensors");
        CHECK(!tti_file_exists(path_of(names[i])));
    }
    command_ok("convert run plain");
    command_ok("convert run M.SafeTensors");
}
