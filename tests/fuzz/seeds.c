/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a fuzz target over files, where it is not linked to libFuzzer:
 *   TARGET FILE...
 * A target that finds something wrong aborts, and the last line on standard error names the file.
 * Exit status: 0 all are well, 1 there is none, or one cannot be read.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of exactly its size, so that ASan sees a read beyond it. */
static int run_file(const char *path)
{
	FILE *file = fopen(path, "rbe");
	uint8_t *data = NULL;
	long size = -1;
	int r = -1;

	if (file && fseek(file, 0, SEEK_END) == 0)
		size = ftell(file);
	if (size >= 0)
		data = malloc((size_t)size);
	if (data) {
		rewind(file);
		if (fread(data, 1, (size_t)size, file) == (size_t)size)
			r = LLVMFuzzerTestOneInput(data, (size_t)size);
	}
	free(data);
	if (file)
		fclose(file);
	return r;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		fprintf(stderr, "%s\n", argv[i]);
		if (run_file(argv[i]) < 0) {
			fprintf(stderr, "cannot be read, or the target fails\n");
			return 1;
		}
	}
	return argc > 1 ? 0 : 1;
}
