/* Answers questions about integer sets with libisl. Build: cc isl.c -o isl -lisl
 *
 * A line of input is a question, fields apart by tabs:
 *   subtract A B    the points of A that B lacks
 *   project A K     what is left of A without dimension K
 *   equal A B       whether all points of one are in the other, for all N
 *   empty A         whether A has no points, for any N
 * and a line of output the answer: 1 or 0, or for each N from 1 to 4 the points between -3 and 3 in each dimension, in
 * lexicographic order, as bits of a hexadecimal number, the first point in its highest bit. */
#include <isl/ctx.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/val.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char bits[7 * 7 * 7 + 4];

static isl_stat mark(isl_point *p, void *user)
{
	int n = *(int *)user, at = 0;
	for (int k = 0; k < n; k++) {
		isl_val *v = isl_point_get_coordinate_val(p, isl_dim_set, k);
		long x = isl_val_get_num_si(v);
		isl_val_free(v);
		if (x < -3 || x > 3) {
			isl_point_free(p);
			return isl_stat_ok;
		}
		at = at * 7 + x + 3;
	}
	bits[at] = 1;
	isl_point_free(p);
	return isl_stat_ok;
}

static void points(isl_set *s)
{
	int n = isl_set_dim(s, isl_dim_set), size = 1;
	for (int k = 0; k < n; k++)
		size *= 7;
	for (int value = 1; value <= 4; value++) {
		memset(bits, 0, sizeof bits);
		isl_set *f = isl_set_fix_si(isl_set_copy(s), isl_dim_param, 0, value);
		f = isl_set_project_out(f, isl_dim_param, 0, 1);
		if (isl_set_foreach_point(f, mark, &n) != isl_stat_ok)
			exit(1);
		isl_set_free(f);
		if (value > 1)
			putchar(' ');
		for (int k = 0; k < size; k += 4)
			printf("%x", bits[k] << 3 | bits[k + 1] << 2 | bits[k + 2] << 1 | bits[k + 3]);
	}
	putchar('\n');
	isl_set_free(s);
}

int main(void)
{
	static char line[1 << 16];
	isl_ctx *c = isl_ctx_alloc();
	while (fgets(line, sizeof line, stdin)) {
		char *op = strtok(line, "\t\n"), *a = strtok(NULL, "\t\n"), *b = strtok(NULL, "\t\n");
		isl_set *s = isl_set_read_from_str(c, a);
		if (!s)
			return 1;
		if (!strcmp(op, "subtract")) {
			points(isl_set_subtract(s, isl_set_read_from_str(c, b)));
		} else if (!strcmp(op, "project")) {
			points(isl_set_project_out(s, isl_dim_set, atoi(b), 1));
		} else if (!strcmp(op, "equal")) {
			isl_set *t = isl_set_read_from_str(c, b);
			printf("%d\n", isl_set_is_equal(s, t));
			isl_set_free(t);
			isl_set_free(s);
		} else {
			printf("%d\n", isl_set_is_empty(s));
			isl_set_free(s);
		}
	}
	isl_ctx_free(c);
	return 0;
}
