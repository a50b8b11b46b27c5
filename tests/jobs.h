/*
 * jobs.h - jobs from YAML, read and built, for tests of jobs and of what they train.
 */
#ifndef TUTTI_TEST_JOBS_H
#define TUTTI_TEST_JOBS_H

#include "test.h"
#include <tutti/job.h>

extern const char job_small[]; // reads, and trains in no time

tt_job *job_parse(tt_ctx *ctx, const char *yaml); // as file j.yaml

// A job and what it built, in a context of its own.
typedef struct job_built {
    tt_ctx *reader, *ctx;
    tt_job *job;
    tt_job_parts parts;
    tt_status status; // of building; ctx has the message
} job_built;
// Must be readable. Skips the test without libyaml.
job_built job_build(const char *yaml);
job_built job_build_read(tt_ctx *reader, tt_job *j); // of a job that reader has read
void job_close(job_built *b);                        // the test has looked at the status

// Building must work, or fail with the message.
job_built job_build_ok(const char *yaml);
void job_build_fails(const char *yaml, const char *message);

#endif
