package gosource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/simplify"
)

func parse(t testing.TB, source string) *reduction.Program {
	t.Helper()
	p, err := reduction.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// programs are of every operator, and of loops that shared programs do not have.
var programs = map[string]string{
	"operators": `param N, M : N >= 1, M >= 1; size N = 5, M = 3;
input float x[N], u[N]; input int w[N] in [0,M); input int v[N] in [0,N); input float s;
array float add[M], mul[M], hi[N], lo[N], l[M], q[N,M]; array int z[N], n[M], f[N];
output add, mul, hi, lo, l, z, n, f, q;
add[w0]  += x[i] - 2.5e-3*(s + i) : { [w0,i] : 0 <= w0 < M, 0 <= i < N } if w[i] == w0;
mul[m]   *= x[i] : { [m,i] : 0 <= m < M, 0 <= i < N, i != m };
hi[i]  max= x[j] : { [i,j] : 0 <= i < N, i < j < N };
lo[i]  min= select(x[j] < s, -x[j], x[j]) : { [i,j] : 0 <= i < N, 0 <= j < N, j != i };
l[m]   lse= x[i]*2 : { [m,i] : 0 <= m < M, m <= i < N };
z[i] draw(u[i])= x[m] : { [i,m] : 0 <= i < N, 0 <= m <= i };
n[m]     += 2*w[i] - m : { [m,i] : 0 <= m < M, 0 <= i < N } if w[i] >= m and w[i] != 1;
f[i]      = floor(10*x[i])*2 + floor(x[z[i]] + i) : { [i] : 0 <= i < N };
q[i,m]    = lognormal(x[i], log(s), exp(x[v[i]])) + sqrt(m) + lgamma(i + 1) : { [i,m] : 0 <= i < N, 0 <= m < M };
`,
	"fixed": `param N : N >= 2; size N = 3; input int w[N] in [0,N); array float a[N], l[N]; output a, l;
a[i] += 1 : { [i] : i = 0 };
a[i] += 2 : { [i] : i = 1 };
l[k] lse= i : { [i,k] : i = 1, 0 <= k < N } if w[i] == k;
l[k] lse= 2*i : { [i,k] : 0 <= i < N, 0 <= k < N, i != 1 } if w[i] == k;
`,
	"constants": `param N : N >= 1; size N = 3; input float x[N]; array float a[N], b[N], c[N], d[N]; array int n[N]; output a, b, c, d, n;
a[i] max= select(x[i] < 0.5, x[i], -1.0/0.0) : { [i] : 0 <= i < N };
b[i]    = 1e300*1e300 - x[i] : { [i] : 0 <= i < N };
c[i]    = select(x[i] < 0.5, 1/(-1*0.0), 0/0 + x[i]) : { [i] : 0 <= i < N };
d[i]    = select(1/select(x[i] < 2, -0.0, 1.0) < 0, 1, 2) : { [i] : 0 <= i < N };
n[i]    = 2*3 - 4 + i : { [i] : 0 <= i < N } if 1 < 2;
`,
	"small": `param N : N >= 1; size N = 3; input float x[N]; array float a[N]; output a;
a[i] = log((1 + exp(x[i]))*1e-315) + lognormal(x[i], x[i], 1e-320) : { [i] : 0 <= i < N };
`,
	"skewed": `param N, M : N >= 2, M >= 2; size N = 6, M = 5; input float x[N,M]; array float a[N,M]; output a;
a[i,j] += x[i,j] : { [i,j] : 0 <= i < N, 0 <= j < M };
a[i,j] += 0.5*a[i-1,j+1] + 0.25*a[i,j-1] : { [i,j] : 1 <= i < N, 1 <= j < M-1 };
`,
	"backward": `param N : N >= 1; size N = 7; input float x[N]; array float a[N], b[N]; output a;
a[i] += x[i] : { [i] : 0 <= i < N };
a[i] += 0.5*b[i+1] : { [i] : 0 <= i < N-1 };
b[i]  = a[i] - 1 : { [i] : 0 <= i < N };
`,
	"mirrored": `param N : N >= 1; size N = 7; input float x[N]; array float a[N], b[N]; output b;
a[i] += 0.5*b[N-i-2] : { [i] : 0 <= i < N-1 };
b[i] += x[i] + a[N-1-i] : { [i] : 0 <= i < N };
`,
	"empty domains": `param N : N >= 2; size N = 5;
input float x[N], u[N]; input int w[N] in [0,3); input int v[N] in [0,N);
array float add[N], hi[N], l[N], r[N], q[N], none[N,0], rec[N-N], idle[N-N]; array int z[N], y[N]; output add, hi, l, r, z, y, none, rec, q;
add[i] += x[j] : { [i,j] : 0 <= i < N, 0 <= j <= i, i != j };
hi[i] max= x[j] : { [i,j] : 0 <= i < N, 0 <= j < N, N <= 1 };
none[i,j] max= x[i] : { [i,j] : 0 <= i < N, 0 <= j < 0 };
rec[i] += rec[i-1] : { [i] : 1 <= i < N, N <= 0 };
idle[i] += idle[i-1] : { [i] : 1 <= i < N, N <= 0 };
z[i] draw(u[i])= x[j] : { [i,j] : 0 <= i < N, 0 <= j <= i, j != i + 1 };
y[i] = 7 : { [i] : 0 <= i < N };
y[i] = 8 + floor(idle[i]) : { [i] : 0 <= i < N, 2*i = 2*N - 1 };
l[i] lse= x[j] : { [i,j] : 0 <= i < N, 0 <= j < N, 3*j = 3*i + 1 } if w[i] == j;
r[i] += x[j]*q[i-1] : { [i,j] : 1 <= i < N, 0 <= j < N, j <= i, N <= 1 } if v[j] == i;
q[i]  = r[i] + 1 : { [i] : 0 <= i < N };
`,
	"strides": `param N : N >= 1; size N = 9; input float x[N]; array float a[2*N], b[N]; output a, b;
a[2*i]   = x[i] : { [i] : 0 <= i < N };
a[2*i+1] = x[i] - a[2*i] : { [i] : 0 <= i < N };
b[i]    += a[j] : { [i,j] : 0 <= i < N, 0 <= 3*j <= 2*i };
`,
	"two loops": `param N, M : N >= 1, M >= 1; size N = 4, M = 5; input float x[M]; array float a[N,M]; output a;
a[i,j] += x[j] : { [i,j] : 0 <= i < N, 0 <= j < M };
a[i,j] += 0.5*a[i-1,k] : { [i,j,k] : 1 <= i < N, 0 <= j < M, 0 <= k < M };
a[i,j] += 0.25*a[i,k] : { [i,j,k] : 0 <= i < N, 0 <= j < M, 0 <= k < j };
`,
	"in place": `param N, K : N >= 1, K >= 1; size N = 6, K = 3; input float x[N]; input int z[N] in [0,K);
array float h[N up,K], g[N down,K], m[K,N up], l[N down], p[N up], y[N], v[N], c[N]; output y, v, c;
h[k,b] += h[k-1,b] : { [k,b] : 1 <= k < N, 0 <= b < K };
h[k,b] += x[i] : { [k,b,i] : i = k, 0 <= k < N, 0 <= b < K } if z[i] == b;
g[k,b] += g[k+1,b] : { [k,b] : 0 <= k < N-1, 0 <= b < K };
g[k,b] += x[i] : { [k,b,i] : i = k, 0 <= k < N, 0 <= b < K } if z[i] == b;
y[k] = h[k,z[k]] : { [k] : 0 <= k < N };
m[b,k] max= m[b,k-1] : { [b,k] : 1 <= k < N, 0 <= b < K };
m[b,k] max= x[k] - b : { [b,k] : 0 <= k < N, 0 <= b < K };
l[k] min= l[k+1] : { [k] : 0 <= k < N-1 };
l[k] min= x[k] : { [k] : 0 <= k < N };
p[k] *= p[k-1] : { [k] : 1 <= k < N };
p[k] *= x[k] : { [k] : 0 <= k < N };
v[k] = g[k,z[k]] + l[k] : { [k] : 0 <= k < N };
c[k] = m[z[k],k]*p[k] : { [k] : 0 <= k < N };
`,
	"in place, in a recurrence": `param N, K : N >= 1, K >= 1; size N = 6, K = 3; input float x[N]; input int z[N] in [0,K);
array float h[N up,K], y[N]; array int w[N] in [0,K); output y, w;
h[k,b] += h[k-1,b] : { [k,b] : 2 <= k < N, 0 <= b < K };
h[k,b] += y[k-1] : { [k,b] : 1 <= k < N, 0 <= b < K } if w[k-1] == b;
y[k] = x[k] + h[k,z[k]] - 0.5*h[k,0] : { [k] : 0 <= k < N };
w[k] = floor(select(h[k,z[k]] > x[k], z[k], 0)) : { [k] : 0 <= k < N };
`,
	"guards that fix": `param N, M : N >= 1, M >= 1; size N = 6, M = 4; input int w[N] in [0,M); input int v[M] in [0,N); input float x[N];
array float a[N,M], b[M]; output a, b;
a[d,m] += x[i] : { [d,m,i] : 0 <= d < N, 0 <= m < M, 0 <= i < N } if w[i] == m and v[m] == d;
b[m] += x[i] : { [m,i,d] : 0 <= m < M, 0 <= i < N, 0 <= d < i } if d == v[m] and m == w[d];
`,
}

// guarded are programs in which guards and selections keep data out that would be an index outside of an array.
var guarded = map[string]string{
	"chosen": `param N, K : N >= 2, K >= 2; size N = 9, K = 4; input int w[N] in [0,2*K); input float x[K], y[N,K];
array float a[N]; output a;
a[i] += select(w[i] < K, x[w[i]], 0.5)*y[i,k] : { [i,k] : 0 <= i < N, 0 <= k < K };
`,
	"divided": `param N, K : N >= 2, K >= 2; size N = 40, K = 30; input int w[N] in [0,2*N); input float x[N], y[N,K];
array float a[K]; output a;
a[k] += x[w[i]+j]*y[i,k] : { [k,i,j] : 0 <= k < K, 0 <= i < N, 0 <= j < K } if w[i] < N-K;
`,
	"binned": `param N, K : N >= 2, K >= 2; size N = 400, K = 4; input int w[N] in [0,2*K), v[N] in [1,K); input float x[K];
array float a[N]; output a;
a[i] += x[w[j]] : { [i,j] : 0 <= j < i, i < N } if w[j] == v[i];
`,
	"buckets": `param N, K : N >= 2, K >= 2; size N = 9, K = 4; input int w[N] in [0,2*N), z[N] in [0,N); input float x[N];
array float l[N], s[N]; output s;
l[i] += x[w[j]]*s[i-1] : { [i,j] : 1 <= i < N, 0 <= j < N } if w[j] < N and z[w[j]] == i;
s[i]  = l[i] + 1 : { [i] : 0 <= i < N };
`,
	"written in part": `param N, K : N >= 2, K >= 2; size N = 9, K = 4; input int w[N] in [0,2*K); input float x[K], y[N,K], u[N];
array float h[N,K], a[N], o[N]; array int d[N]; output a, o;
h[i,k]  = x[w[i]] - y[i,k] : { [i,k] : 0 <= i < N, 0 <= k < K } if w[i] < K;
a[i]   += select(w[i] < K, h[i,k], 0.5) : { [i,k] : 0 <= i < N, 0 <= k < K };
d[i] draw(u[i])= y[j,0] : { [i,j] : 0 <= i < N, 0 <= j < N, i = 2*j };
o[j]   += d[2*j] : { [j] : 0 <= j < N, 2*j < N };
`,
	"floors of what lacks": `param N : N >= 2; size N = 9; input int w[N] in [0,2); input float x[N], y[N], u[N];
array float h[N], g[N], f[N], o[N]; array int k[N], d[N]; output o;
h[i]  = x[i] : { [i] : 0 <= i < N } if w[i] == 1;
g[i]  = 2*h[i] : { [i] : 0 <= i < N };
k[i]  = floor(9*g[i]) : { [i] : 0 <= i < N };
f[i]  = x[i] - 1 : { [i] : 0 <= i < N } if w[i] == 1;
d[i] draw(u[i])= y[j] + 1 + f[i] : { [i,j] : 0 <= i < N, 0 <= j < N };
o[i] += select(w[i] == 1, k[i] + d[i], 0) : { [i] : 0 <= i < N };
`,
	"names of others": `param N, K : N >= 2, K >= 2; size N = 9, K = 4; input int z[N] in [0,K); input float x[N], w_x[K], s_x[K], p_N[K];
array float y[]; output y;
y[] += w_x[z[i]]*s_x[z[i]]*p_N[z[i]]*x[i] : { [i] : 0 <= i < N };
`,
	"fixed twice": `param N : N >= 2; size N = 9; input int z[N] in [0,N), o[N] in [0,N-1); input float x[N];
array float l[N], s[N]; output s;
l[i] += x[j]*s[i-1] : { [i,j] : 1 <= i < N, 0 <= j < N } if o[j] + 1 == i and z[j] == i;
s[i]  = l[i] + 1 : { [i] : 0 <= i < N };
`,
	"buckets with gaps": `param N : N >= 2; size N = 9; input int z[N] in [0,N); input float x[N];
array float l[N], s[N]; output s;
l[i] += x[j]*s[i-1] : { [i,j] : 1 <= i < N, 0 <= j < N, i = 2*j } if z[j] == i;
s[i]  = l[i] + 1 : { [i] : 0 <= i < N };
`,
	"gaps that a guard would fix": `param N : N >= 2; size N = 9; input int z[5] in [0,6); input float x[N];
array float s[5]; output s;
s[i] += x[j] : { [i,j,k] : 0 <= j < N, 0 <= i <= 5, 2*k = i } if z[i] == k;
`,
	"bounds that a guard would fix": `param N : N >= 2; size N = 9; input int z[4] in [0,3); input float x[4], y[N];
array float s[N]; output s;
s[j] += x[i]*y[j] : { [i,j,k] : 0 <= j < N, 0 <= i <= 4, i <= 3*k, 3*k <= i + 1 } if z[i] == k;
`,
	"no bucket": `param N, K : N >= 2, K >= 2; size N = 9, K = 4; input int z[N] in [0,N); input float x[N];
array float l[N], s[N]; output s;
l[i] += x[j]*s[i-1] : { [i,j] : 5 <= i < N, 0 <= j < 5 } if z[j+N-5] == i;
s[i]  = l[i] + 1 : { [i] : 0 <= i < N };
`,
}

// orders are programs whose loops are not in the order of their dimensions, or have buckets.
var orders = map[string]string{
	"transposed": `param N, M : N >= 1, M >= 1; size N = 4, M = 5; input float x[N,M], y[M,N], z[N]; array float a[M,N], b[M], c[N]; output a, b, c;
a[j,i] += x[i,j]*z[i] : { [j,i,k] : 0 <= j < M, 0 <= i < N, 0 <= k < M, k <= i };
b[j] max= y[j,i] - x[i,j] : { [j,i] : 0 <= j < M, 0 <= i < N, i <= j } if x[i,j] < y[j,i];
c[i]  = z[i] : { [i,j] : j = i, 0 <= i < N };
`,
	"one place": `param N, M : N >= 1, M >= 1; size N = 4, M = 5; input float x[N,M]; array float a[1,M], b[N]; output a, b;
a[i,j]  = x[i,j] : { [i,j] : 0 <= i < 1, 0 <= j < M };
b[j] lse= x[i,k] : { [i,j,k] : 0 <= i < N, 0 <= j < 1, 0 <= k < M, k != i };
`,
	"buckets": `param N, M : N >= 2, M >= 1; size N = 5, M = 9; input int doc[M] in [0,N), word[M] in [0,2); input float x[M], base[2];
array float l[N], r[N,2], a[N]; output a, r;
l[i]   += x[w]*a[i-1] : { [i,w] : 1 <= i < N, 0 <= w < M, w <= i } if doc[w] == i and x[w] > 0.01;
r[i,b] += a[i+1]*base[word[w]] : { [i,w,b] : 0 <= i < N-1, 0 <= w < M, 0 <= b < 2 } if word[w] == b and i == doc[w];
a[i]    = l[i] + 1 : { [i] : 0 <= i < N };
`,
	"buckets by two": `param N, M : N >= 2, M >= 1; size N = 5, M = 9; input int doc[M] in [0,N), word[M] in [0,2); input float x[M];
array float r[N,2], a[N]; output a, r;
r[i,b] += x[w]*a[i] : { [i,w,b] : 0 <= i < N, 0 <= w < M, 0 <= b < 2 } if word[w] == b and i == doc[w];
a[i]   += r[i+1,b] + 1 : { [i,b] : 0 <= i < N-1, 0 <= b < 2 };
`,
}

// passes are programs with arrays that one pass of a time loop writes and reads, and with some that it does not.
var passes = map[string]string{
	"brief": `param N, M : N >= 2, M >= 2; size N = 5, M = 3; input float x[N,M], u[N];
array float a[N,M], b[N,M], m[N], l[N], p[N], far[N,M], s[N]; array int z[N]; output z, s;
a[i,j]   += x[i,k]*s[i-1] : { [i,j,k] : 1 <= i < N, 0 <= j < M, 0 <= k <= j, k < M };
b[i,j]    = a[i,j] + x[i,j] : { [i,j] : 0 <= i < N, 0 <= j < M };
m[i]   max= b[i,j] : { [i,j] : 0 <= i < N, 1 <= j < M } if x[i,j] > 0.3;
l[i]   lse= b[i,j] : { [i,j] : 0 <= i < N, 0 <= j < M } if x[i,j] > 0.5;
p[i]     *= b[i,j] + far[i,j] : { [i,j] : 0 <= i < N, 1 <= j < M };
far[i,j]  = b[i,j] - 1 : { [i,j] : 0 <= i < 2, 0 <= j < M };
far[i,j]  = far[i-2,j] - s[i-1] : { [i,j] : 2 <= i < N, 0 <= j < M };
z[i] draw(u[i])= 1 + x[i,j] + select(b[i,j] > 1, 0.5, 0) : { [i,j] : 0 <= i < N, 0 <= j < M };
s[i]      = z[i] + p[i]/1000 + select(m[i] > 0, m[i], 0) + select(l[i] > 0, l[i], 0) + x[i,z[i]] : { [i] : 0 <= i < N };
`,
	"running": `param N, M : N >= 1, M >= 1; size N = 5, M = 3; input float x[N], y[N,M];
array float s[N], l[N,M], g[], m[M]; output g, m;
s[i]   += x[j] : { [i,j] : 0 <= i < N, i <= j < N };
g[]    += y[i,k]/(s[i] + 1) : { [i,k] : 0 <= i < N, 0 <= k < M } if y[i,k] > 0.2;
l[i,k] += y[j,k] : { [i,k,j] : 0 <= i < N, 0 <= k < M, 0 <= j <= i, j < N };
m[k] max= l[i,k]*x[i] - s[i] : { [k,i] : 0 <= k < M, 0 <= i < N };
`,
	"fused": `param Y, X, K : Y >= 1, X >= 2, K >= 2; size Y = 3, X = 4, K = 3; input float x[Y,X,K], a[K,K]; input int w[X] in [0,Y);
array float b[Y,X,K], c[Y,X,K], m[Y,X], d[Y,X,K], e[Y,X,K], f[Y,K], h[Y,X,K], l[Y,X]; array int n[Y,X]; output c, d, f, h;
b[y,z,k] += x[y,z,j]*a[j,k] : { [y,z,k,j] : 0 <= y < Y, 0 <= z < X, 0 <= k < K, 0 <= j <= k, j < K };
m[y,z] max= b[y,z,k] : { [y,z,k] : 0 <= y < Y, 0 <= z < X, 0 <= k < K };
c[y,z,k]  = b[y,z,k]/m[y,z] : { [y,z,k] : 0 <= y < Y, 0 <= z < X, 0 <= k < K };
e[y,z,k] *= c[y,z,j] + 1 : { [y,z,k,j] : 0 <= y < Y, 0 <= z < X, 0 <= k < K, k <= j < K };
l[y,z] lse= e[y,z,k] : { [y,z,k] : 0 <= y < Y, 0 <= z < X, 1 <= k < K };
d[y,z,k]  = e[y,z,k] + e[y,z+1,k] - l[y,z] : { [y,z,k] : 0 <= y < Y, 0 <= z < X-1, 0 <= k < K };
d[y,z,k]  = 0 : { [y,z,k] : 0 <= y < Y, z = X-1, 0 <= k < K };
n[y,z]   += 1 : { [y,z,k] : 0 <= y < Y, 0 <= z < X, 0 <= k < X } if w[k] == y;
f[y,k]   += n[y,z]*d[y,z,k] : { [y,k,z] : 0 <= y < Y, 0 <= k < K, 0 <= z < X };
h[y,z,k]  = f[Y-1-y,k] + d[y,z,k] : { [y,z,k] : 0 <= y < Y, 0 <= z < X, 0 <= k < K };
`,
	"brief from the end": `param N, M : N >= 2, M >= 2; size N = 5, M = 3; input float x[N,M];
array float t[N,M], s[M,N], o[N]; output o;
t[i,j] += o[N-1-i-1]*x[i,j] : { [i,j] : 0 <= i < N-1, 0 <= j < M };
s[j,i] += t[N-1-i,k] : { [j,i,k] : 0 <= i < N, 0 <= j < M, 0 <= k <= j, k < M };
o[i]   += s[j,i] + x[i,j] : { [i,j] : 0 <= i < N, 0 <= j < M };
`,
}

// module writes a module whose main runs the Compute of every package, and returns its program: it
// reads requests and writes outputs as JSON lines.
func module(t *testing.T, packages map[string]string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to compile with; install Go")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module emitted\n\ngo 1.21\n")
	var imports, cases strings.Builder
	for name, source := range packages {
		write(name+"/z.go", source)
		fmt.Fprintf(&imports, "\t%q\n", "emitted/"+name)
		fmt.Fprintf(&cases, "\t%q: %s.Compute,\n", name, name)
	}
	write("main.go", `package main

import (
	"encoding/json"
	"fmt"
	"os"
`+imports.String()+`)

var all = map[string]func(map[string]int64, map[string]any) (map[string]any, error){
`+cases.String()+`}

type request struct {
	Program string
	Sizes   map[string]int64
	Ints    map[string][]int64
	Floats  map[string][]float64
}

func main() {
	in := json.NewDecoder(os.Stdin)
	for {
		var r request
		if in.Decode(&r) != nil {
			return
		}
		inputs := map[string]any{}
		for name, x := range r.Ints {
			inputs[name] = x
		}
		for name, x := range r.Floats {
			inputs[name] = x
		}
		outputs, err := all[r.Program](r.Sizes, inputs)
		text := map[string]string{}
		for name, x := range outputs {
			text[name] = fmt.Sprint(x)
		}
		if err != nil {
			text["error"] = err.Error()
		}
		json.NewEncoder(os.Stdout).Encode(text)
	}
}
`)
	program := filepath.Join(dir, "emitted")
	c := exec.Command("go", "build", "-gcflags=-N -l", "-o", program, ".")
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

type request struct {
	Program string
	Sizes   map[string]int64
	Ints    map[string][]int64
	Floats  map[string][]float64
}

var whole = flag.Bool("whole", false, "compile every shared program, not only a few, and run each at 5 sizes with 20 seeds")

// few are shared programs with every step and every kind of loop.
var few = []string{"ps", "gs2gmm", "gmm_gs", "gmm_mh", "lbp", "forest", "dmm_lw"}

// inexact are the shared programs whose sums depend on the order of their terms, with the difference that is allowed: an
// element of coxph's h may be a thousandth of the terms that it is the difference of.
var inexact = map[string]float64{"lbp": 1e-9, "coxph": 1e-8}

// TestEmitted compiles the source of every program, as it is and simplified, in one module, and compares its outputs, and
// those of the interpreter for the simplified program, with those of the interpreter. It also compares the points that the
// interpreter counts with the polynomials.
func TestEmitted(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles Go")
	}
	all := map[string]*reduction.Program{}
	for kind, list := range map[string]map[string]string{"": programs, "o ": orders, "p ": passes, "g ": guarded} {
		for name, source := range list {
			all[identifier(kind+name)] = parse(t, source)
		}
	}
	packages, simplified, own := map[string]string{}, map[string]*reduction.Program{}, map[string]bool{}
	for name := range all {
		own[name] = true
	}
	files, _ := filepath.Glob("../../../../shared/reduction/*.red")
	if len(files) == 0 {
		t.Log("no programs in ../shared/reduction: put the .red files of the benchmarks there, beside the module")
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".red"); !*whole && !slices.Contains(few, name) {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".red")] = parse(t, string(b))
	}
	for name, p := range all {
		q, _, err := simplify.Simplify(p)
		if err != nil {
			t.Fatal(name, err)
		}
		simplified[name] = q
		for as, r := range map[string]*reduction.Program{name: p, name + "_simplified": q} {
			source, err := Source(r, as)
			if err != nil {
				t.Fatal(as, err)
			}
			packages[as] = source
		}
	}
	program := module(t, packages)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	var in bytes.Buffer
	type expected struct {
		name      string
		sizes     map[string]int64
		outputs   map[string]string
		tolerance float64
	}
	var want []expected
	for _, name := range names {
		p := all[name]
		tolerance := inexact[name]
		if own[name] {
			tolerance = 1e-12
		}
		seeds := 6
		if *whole {
			seeds = 100
		}
		for seed := range uint64(seeds) {
			sizes := map[string]int64{}
			step := seed % 6
			if *whole {
				step = seed / 20
			}
			for k, q := range p.Params {
				if sizes[q.Name] = 2 + int64(step+uint64(k))%3; len(p.Params) < 3 {
					sizes[q.Name] = 2 + int64(step*3+uint64(k))%6
				}
			}
			data := map[string]*reduction.Tensor{}
			if err := p.Synthesise(sizes, seed, data, 1<<20); err != nil {
				t.Fatal(err)
			}
			o, err := reduction.Interpret(context.Background(), p, reduction.Options{Sizes: sizes, Inputs: data})
			if err != nil {
				t.Fatal(name, err)
			}
			s, err := reduction.Interpret(context.Background(), simplified[name], reduction.Options{Sizes: sizes, Inputs: data})
			if err != nil {
				t.Fatal(name, err)
			}
			counted(t, name, p, o, sizes)
			counted(t, name+" simplified", simplified[name], s, sizes)
			text := map[string]string{}
			for _, out := range p.Outputs {
				if d := o.Outputs[out].Difference(s.Outputs[out]); !(d <= tolerance) {
					t.Errorf("%s at %v, seed %d: the simplified program's %s differs by %v", name, sizes, seed, out, d)
				}
				if x := o.Outputs[out]; x.Ints != nil {
					text[out] = fmt.Sprint(x.Ints)
				} else {
					text[out] = fmt.Sprint(x.Floats)
				}
			}
			r := request{Sizes: sizes, Ints: map[string][]int64{}, Floats: map[string][]float64{}}
			for input, x := range data {
				if x.Ints != nil {
					r.Ints[input] = x.Ints
				} else {
					r.Floats[input] = x.Floats
				}
			}
			for _, as := range []string{name, name + "_simplified"} {
				r.Program = as
				if err := json.NewEncoder(&in).Encode(r); err != nil {
					t.Fatal(err)
				}
				want = append(want, expected{as, sizes, text, tolerance})
			}
		}
	}
	c := exec.Command(program)
	c.Stdin = &in
	answers, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(answers))
	for _, w := range want {
		var got map[string]string
		if err := d.Decode(&got); err != nil {
			t.Fatal(w.name, err)
		}
		for name, x := range w.outputs {
			if !close(got[name], x, w.tolerance) {
				t.Errorf("%s at %v: %s is %.200s, want %.200s; %s", w.name, w.sizes, name, got[name], x, got["error"])
				break
			}
		}
	}
}

// TestDrawnApart wants a draw over a domain with != refused with what can be written as Go.
func TestDrawnApart(t *testing.T) {
	const draw = "param N : N >= 2; input float u[N], w[N]; array int d[N]; output d; d[i] draw(u[i])= w[j] : { [i,j] : 0 <= i < N, 0 <= j < N%s }%s;"
	if _, err := Source(parse(t, fmt.Sprintf(draw, ", i != j", "")), "p"); !errors.Is(err, reduction.ErrProgram) || !strings.Contains(fmt.Sprint(err), "such as if i != j") {
		t.Errorf("a domain: %v; want the advice to write a guard", err)
	}
	if _, err := Source(parse(t, fmt.Sprintf(draw, "", " if i != j")), "p"); err != nil {
		t.Error("a guard:", err)
	}
}

// TestNoOrder wants arrays refused that are kept in place although an element is read after its update.
func TestNoOrder(t *testing.T) {
	const decl = `param N : N >= 2; size N = 4; input float x[N]; input int z[N] in [0,N); array float h[N %s], y[N]; output y;
`
	const up = "h[k] += h[k-1] : { [k] : 1 <= k < N };\nh[k] += x[k] : { [k] : 0 <= k < N };\n"
	const down = "h[k] += h[k+1] : { [k] : 0 <= k < N-1 };\nh[k] += x[k] : { [k] : 0 <= k < N };\n"
	for _, c := range []struct {
		mark, sums, reader string
		legal              bool
	}{
		{"up", up, "y[k] = h[k] : { [k] : 0 <= k < N };", true},
		{"up", up, "y[k] = h[z[k]] : { [k] : 0 <= k < N };", false},
		{"up", up, "y[k] = h[k] - h[k-1] : { [k] : 1 <= k < N };", false},
		{"up", up, "y[k] = h[N-1] : { [k] : 0 <= k < N };", true},
		{"up", up, "y[k] = h[0] : { [k] : 0 <= k < N };", true},
		{"up", up, "y[k] = h[N-1] - h[0] : { [k] : 0 <= k < N };", false},
		{"up", up, "y[k] = h[k] + y[k-1] : { [k] : 1 <= k < N }; y[k] = 1 : { [k] : k = 0 };", true},
		{"up", up, "y[k] = h[k] + y[k+1] : { [k] : 0 <= k < N-1 }; y[k] = 1 : { [k] : k = N-1 };", false},
		{"down", down, "y[k] = h[k] + y[k-1] : { [k] : 1 <= k < N }; y[k] = 1 : { [k] : k = 0 };", false},
		{"down", down, "y[k] = h[k] + y[k+1] : { [k] : 0 <= k < N-1 }; y[k] = 1 : { [k] : k = N-1 };", true},
		{"up", up + "h[k] += 0.5*h[k-1] : { [k] : 1 <= k < N };\n", "y[k] = h[k] : { [k] : 0 <= k < N };", false},
	} {
		p := parse(t, fmt.Sprintf(decl, c.mark)+c.sums+c.reader)
		if _, err := Source(p, "p"); (err == nil) != c.legal || err != nil && !errors.Is(err, reduction.ErrProgram) {
			t.Errorf("%s%s: %v; want an order: %v", c.sums, c.reader, err, c.legal)
		}
	}
}

// TestTooLarge wants a program with too many vertices for an order to be at fault, with what to do.
func TestTooLarge(t *testing.T) {
	var dims, ranges []string
	for d := range 13 {
		name := fmt.Sprintf("d%d", d)
		dims, ranges = append(dims, name), append(ranges, "0 <= "+name+" < N")
	}
	_, err := Source(parse(t, fmt.Sprintf(`param N : N >= 1; input float x[N]; array float a[N], s[N]; output s;
a[i] += s[i-1] : { [i] : 1 <= i < N };
s[d0] += a[d0]*x[d1] : { [%s] : %s };`, strings.Join(dims, ","), strings.Join(ranges, ", "))), "p")
	if !errors.Is(err, reduction.ErrProgram) || !strings.Contains(fmt.Sprint(err), "use fewer dimensions in a statement") {
		t.Errorf("%v; want what to do", err)
	}
}

// identifier makes a name of a package.
func identifier(name string) string { return strings.NewReplacer(" ", "_", ",", "").Replace(name) }

// counted compares the points that a run evaluated with the polynomials: elements that no output needs have none.
func counted(t *testing.T, name string, p *reduction.Program, o *reduction.Outcome, sizes map[string]int64) {
	t.Helper()
	cost, err := p.Cost(false)
	if err != nil {
		t.Fatal(name, err)
	}
	if !cost.Exact() {
		return
	}
	for k, s := range p.Statements {
		if want := cost.Points(k, sizes).Int64(); o.Points[k] > want {
			t.Errorf("%s at %v: %d points of %s, want at most %d", name, sizes, o.Points[k], s, want)
		}
	}
	if base, _, _ := strings.Cut(name, " "); complete[base] && total(o.Points) != cost.Total(sizes).Int64() {
		t.Errorf("%s at %v: %d points, want %v", name, sizes, total(o.Points), cost.Total(sizes))
	}
}

// complete are the shared programs of which the outputs need all elements, also when they are simplified.
var complete = map[string]bool{"gmm_gs": true, "ps": true, "lbp": true, "coxph": true, "forest": true, "flow": true}

func total(list []int64) (sum int64) {
	for _, n := range list {
		sum += n
	}
	return sum
}

// close compares numbers in brackets: equal, or within a tolerance of each other, relative.
func close(a, b string, tolerance float64) bool {
	x, y := strings.Fields(strings.Trim(a, "[]")), strings.Fields(strings.Trim(b, "[]"))
	return slices.EqualFunc(x, y, func(a, b string) bool {
		var p, q float64
		_, err := fmt.Sscan(a, &p)
		_, err2 := fmt.Sscan(b, &q)
		d := p - q
		return err == nil && err2 == nil && (a == b || !math.IsInf(p, 0) && d <= tolerance*max(p, -p) && -d <= tolerance*max(p, -p))
	})
}
