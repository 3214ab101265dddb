package reduction

import "testing"

// degrees are the degrees of the shared programs, as written and with guards counted
// once.
var degrees = map[string][2]string{
	"gmm_gs":     {"N^2*K^2", "N^2*K + N*K^2"},
	"gmm_mh":     {"N^2 + N*K", "N^2 + N*K"},
	"gmm_lw":     {"N^2 + N*K", "N^2 + N*K"},
	"lda_gs":     {"W^2*K^2", "W^2*K + W*K^2"},
	"lda_mh":     {"W^2*K", "W^2*K"},
	"lda_lw":     {"W^2*K", "W^2"},
	"dmm_gs":     {"W*A*D^2*K^2", "W*D*K^2 + A*D*K^2 + D^2*K^2"},
	"dmm_mh":     {"W*A*D^2 + D^2*K", "W*D + A*D + D^2*K"},
	"dmm_lw":     {"W*A*D^2 + D^2*K", "W*D + A*D + D^2"},
	"lbp":        {"Y*X*K^2*D^2", "Y*X*K^2*D^2"},
	"coxph":      {"N^2*K^2", "N^2*K^2"},
	"ps":         {"N^2", "N^2"},
	"gs2gmm":     {"N^2", "N^2"},
	"ps_opt":     {"N", "N"},
	"gs2gmm_opt": {"N", "N"},
	"flow":       {"B*T*S^2 + B*T*S*V", "B*T*S^2"},
	"forest":     {"R*M^2", "R*M^2"},
	"windows":    {"N^3", "N^3"},
}

func TestSharedDegrees(t *testing.T) {
	for name, source := range shared(t) {
		want, ok := degrees[name]
		if !ok {
			t.Errorf("no degree of %s is known to this test", name)
			continue
		}
		p := parse(t, source)
		for k, once := range []bool{false, true} {
			c, err := p.Cost(once)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if d, err := c.Degree(); err != nil || d.String() != want[k] {
				t.Errorf("%s, guards once %v: %v, %v; want %s", name, once, d, err, want[k])
			}
		}
	}
}

// TestCost has sums whose numbers of points are known.
func TestCost(t *testing.T) {
	const decl = "param N, M : N >= 1, M >= 1; size N = 6, M = 4; input int w[N] in [0,M); array float y[N]; output y;\n"
	for _, c := range []struct {
		statement, written, once string
		points, pointsOnce       int64
	}{
		{"y[i] += 1 : { [i,j] : 0 <= i < N, 0 <= j <= i };", "N^2", "N^2", 21, 21},
		{"y[i] += 1 : { [i,j] : 0 <= i < N, 0 <= j < N, j != i };", "N^2", "N^2", 30, 30},
		{"y[i] += 1 : { [i,j] : 0 <= i < N, 0 <= j < M } if w[i] == j;", "N*M", "N", 24, 6},
		{"y[i] += 1 : { [i,j] : 0 <= i < N, 0 <= j < M } if j == w[i];", "N*M", "N", 24, 6},
		{"y[i] += 1 : { [i,j] : 0 <= i < N, 0 <= j < M } if w[i] > j;", "N*M", "N*M", 24, 24},
		{"y[i] += 1 : { [i,j,k] : 0 <= i < N, 0 <= j < M, 0 <= k < M } if j == k and k == j;", "N*M^2", "N*M", 96, 24},
		{"y[i] += 1 : { [i,j] : 0 <= i < N, 0 <= j, i + j < N, j < M };", "N^2 + N*M + M^2", "N^2 + N*M + M^2", 18, 18},
		{"y[i] += 1 : { [i] : 0 <= i < N, 3 < i };", "N", "N", 2, 2},
		{"y[i] += 1 : { [i] : 0 <= i < N, i < 3 };", "1", "1", 3, 3},
		{"y[i] += 1 : { [i] : 0 <= i < N, i < 0 };", "0", "0", 0, 0},
		{"y[0] += 1 : { [] : };", "1", "1", 1, 1},
		{"y[0] += 1 : { [] : N < M };", "1", "1", 0, 0},
	} {
		p := parse(t, decl+c.statement)
		for once, want := range map[bool]struct {
			degree string
			points int64
		}{false: {c.written, c.points}, true: {c.once, c.pointsOnce}} {
			cost, err := p.Cost(once)
			if err != nil {
				t.Fatal(c.statement, err)
			}
			d, err := cost.Degree()
			if err != nil || d.String() != want.degree {
				t.Errorf("%s guards once %v: degree %v, %v; want %s", c.statement, once, d, err, want.degree)
			}
			if n := cost.Total(p.Sizes); n.Int64() != want.points {
				t.Errorf("%s guards once %v: %v points, want %d", c.statement, once, n, want.points)
			}
		}
	}
	p := parse(t, decl+"y[i] += 1 : { [i,j] : 0 <= i < N, 0 <= 2*j < N };")
	c, err := p.Cost(false)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := c.Degree(); err != nil || d.String() != "N^2" || c.Exact() {
		t.Errorf("degree %v, %v, exact %v; want N^2, not exact", d, err, c.Exact())
	}
}
