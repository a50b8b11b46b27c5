/*
 * data_show.h - pictures of a data set.
 */
#ifndef TUTTI_CLI_DATA_SHOW_H
#define TUTTI_CLI_DATA_SHOW_H

#include "data/data.h"

// The first 64 images of a data set as one PNG file, in rows of 8.
tt_status cli_sheet_write(tt_data *d, const char *file) TTI_CHECKED;

#endif
