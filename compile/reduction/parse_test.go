package reduction

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// head declares what the programs of these tests use.
const head = `param N, K : N >= K, K >= 1;
size N = 5, K = 3;
input float x[N], u[N];
input int w[N] in [0,K);
`

// programs are the ones that tests of several functions use.
var programs = map[string]string{
	"prefix": `param N : N >= 2;
size N = 7;
input float a0;
array float A[N], B[N];
output B;
A[0] = a0 : { [] : };
B[i] += A[j] : { [i,j] : 0 <= i < N, 0 <= j <= i };
A[i+1] = 0.5*B[i] + 1.0 : { [i] : 0 <= i < N-1 };
`,
	"all": head + `
array float s[K], p[], hi[N], lo[N], l[], c[N,N];
array int z[N] in [0,K), n[];
output s, p, hi, lo, l, z, n, c;
s[k] += x[i] - -2.5e-3*(x[i] + 1) : { [k,i] : 0 <= k < K, 0 <= i < N } if w[i] == k and x[i] != 0.25; # a comment
p[] *= x[i] : { [i] : 0 <= i < N };
hi[i] max= x[j] : { [i,j] : 0 <= i < N, i < j < N };
lo[i] min= select(x[j] < 0.5, x[j], -(x[j] - 1)) : { [i,j] : 0 <= i < N, 0 <= j < N, j != i };
l[] lse= log(x[i]*2)/sqrt(4) : { [i] : 0 <= i < N };
z[i] draw(u[i])= exp(x[k]) : { [i,k] : 0 <= i < N, 0 <= k < K };
n[] += z[i]*2 - i : { [i] : 0 <= i < N };
c[i,j] = x[w[i]] - lognormal(x[j], lgamma(2), 1.5) : { [i,j] : 0 <= i < N, j = 2*i, j < N };
c[i,j] = floor(x[i]) + 0.5 : { [i,j] : 0 <= i < N, 0 <= j < N, j != 2*i };
`,
}

// shared returns the programs of a folder outside this repository, or skips.
func shared(t testing.TB) map[string]string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "reduction")
	files, _ := filepath.Glob(filepath.Join(dir, "*.red"))
	if len(files) == 0 {
		t.Skipf("no programs below %s; put a collection of .red files there", dir)
	}
	all := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".red")] = string(b)
	}
	return all
}

// parse is Parse of a program that has to be right.
func parse(t testing.TB, source string) *Program {
	t.Helper()
	p, err := Parse(source)
	if err != nil {
		t.Fatalf("%v in\n%s", err, source)
	}
	return p
}

// roundTrip wants printing and parsing to change nothing.
func roundTrip(t testing.TB, p *Program) {
	t.Helper()
	text := p.String()
	q, err := Parse(text)
	if err != nil {
		t.Fatalf("what was printed is refused: %v\n%s", err, text)
	}
	if again := q.String(); again != text {
		t.Fatalf("printed\n%s\nand, when that was parsed,\n%s", text, again)
	}
}

func TestRoundTrip(t *testing.T) {
	for _, source := range programs {
		roundTrip(t, parse(t, source))
	}
	roundTrip(t, parse(t, "array float a[2]; output a; a[i] = i/2 : { [i] : 0 <= i < 2 };")) // without parameters
}

// TestMark skips the byte order mark that some editors put in front of a text, which places do not count.
func TestMark(t *testing.T) {
	if got, want := parse(t, "\ufeff"+programs["all"]).String(), parse(t, programs["all"]).String(); got != want {
		t.Errorf("the program is\n%s, want\n%s", got, want)
	}
	if _, err := Parse("\ufeff?"); err == nil || !strings.HasPrefix(err.Error(), "1:1: ") {
		t.Errorf("%v; want the first character", err)
	}
}

func TestRoundTripOfSharedPrograms(t *testing.T) {
	for _, source := range shared(t) {
		roundTrip(t, parse(t, source))
	}
}

func TestPrint(t *testing.T) {
	p := parse(t, programs["all"])
	for k, want := range []string{
		"s[k] += x[i] - -0.0025*(x[i] + 1) : { [k,i] : 0 <= k < K, 0 <= i < N } if w[i] == k and x[i] != 0.25",
		"p[] *= x[i] : { [i] : 0 <= i < N }",
		"hi[i] max= x[j] : { [i,j] : 0 <= i < N, i < j < N }",
		"lo[i] min= select(x[j] < 0.5, x[j], -(x[j] - 1)) : { [i,j] : 0 <= i < N, 0 <= j < N, j != i }",
		"l[] lse= log(x[i]*2)/sqrt(4) : { [i] : 0 <= i < N }",
		"z[i] draw(u[i])= exp(x[k]) : { [i,k] : 0 <= i < N, 0 <= k < K }",
		"n[] += z[i]*2 - i : { [i] : 0 <= i < N }",
	} {
		if got := p.Statements[k].String(); got != want {
			t.Errorf("statement %d:\n%s, want\n%s", k, got, want)
		}
	}
	for _, c := range []struct{ source, want string }{
		{"1 - (2 - 3)", "1 - (2 - 3)"}, {"(1 - 2) - 3", "1 - 2 - 3"}, {"2/(3*4)", "2/(3*4)"}, {"(2/3)*4", "2/3*4"},
		{"-(1 + 2)*3", "-(1 + 2)*3"}, {"-(-1)", "--1"}, {"2*-3", "2*-3"}, {"1e3", "1000.0"}, {"1.0", "1.0"}, {"1e300", "1e+300"},
		{"(1 < 2) == (3 < 4)", "(1 < 2) == (3 < 4)"}, {"-(2*3)", "-(2*3)"},
	} {
		q := &parser{lexer: lexer{src: c.source, line: 1, column: 1}}
		if err := q.advance(); err != nil {
			t.Fatal(err)
		}
		e, err := q.expr()
		if err != nil {
			t.Fatal(err)
		}
		if got := Text(e); got != c.want {
			t.Errorf("%s is printed as %s, want %s", c.source, got, c.want)
		}
	}
}

// TestRefusals has a program for each thing that is refused, with its message.
func TestRefusals(t *testing.T) {
	body := func(s string) string {
		return head + "array float y[N]; array int z[N]; output y, z;\nz[i] = 0 : { [i] : 0 <= i < N };\n" + s
	}
	for _, c := range []struct{ source, want string }{
		{"", "no outputs; name what to compute by 'output NAME;'"},
		{"param", "1:6: the end, want the name of a parameter"},
		{"param N\nsize N = 3;", "2:1: 'size', want ';'"},
		{"param N; size N = 3, N = 4;", "1:22: the size of N is given twice"},
		{"param N; size M = 3;", "the size of M is given, which is not a parameter"},
		{"param N; size N = 2*N;", "1:20: the size of N is not a number"},
		{"param N, N;", "1:10: N is declared already, at 1:7"},
		{"param exp;", "1:7: exp is a function"},
		{"param A,B,C,D,E,F,G;", "1:19: 7 parameters; want at most 6"},
		{"param N : 1 < 2 < ;", "1:19: ';', want a number, a name or '('"},
		{"param N : N;", "1:12: ';', want <, <=, >, >=, = or !="},
		{"input double x;", "1:7: 'double', want 'int' or 'float'"},
		{"input float x in [0,2);", "1:13: x has a range of values and is not of type int"},
		{"input float x[M];", "1:15: M is not a parameter"},
		{"array float y;", "1:13: y has no brackets; an array of one element is y[]"},
		{"array float y[]; output y;", "1:13: no statement writes y"},
		{"input float y; output y;", "output y is not a declared array"},
		{"array float y[]; output y, y;", "1:28: y is an output twice"},
		{"array float y[]; output y; y[] = 1.0 ! 2 : { [] : };", `1:38: unexpected character "!"`},
		{"array float y[]; output y; y[] = 2x : { [] : };", "1:34: '2x' is neither a number nor a name"},
		{"array float y[]; output y; y[] = 99999999999999999999 : { [] : };", "1:34: 99999999999999999999 does not fit into 64 bits"},
		{"array float y[]; output y; y[] = 1e999 : { [] : };", "1:34: 1e999 does not fit into 64 bits"},
		{"array float y[]; output y; y[] := 1 : { [] : };", "1:32: ':', want =, +=, *=, max=, min=, lse=, draw(u)= or drawlog(u)="},
		{body("y[i,i] = 1 : { [i] : 0 <= i < N };"), "7:1: y has 2 indices here; want 1"},
		{body("x[i] = 1 : { [i] : 0 <= i < N };"), "7:1: x is an input and cannot be written"},
		{body("q[i] = 1 : { [i] : 0 <= i < N };"), "7:1: q is not declared"},
		{body("y[i] = 1 : { [i,i] : 0 <= i < N };"), "7:17: dimension i is there twice"},
		{body("y[N] = 1 : { [N] : 0 <= N < 5 };"), "7:1: dimension N has the name of a parameter or array"},
		{body("y[w[0]] = 1 : { [i] : 0 <= i < N };"), "7:3: w[0] is not affine; want a sum of integer multiples of parameters and dimensions"},
		{body("y[i] = 1 : { [i] : 0 <= i*i < N };"), "7:26: i*i is not affine; want a sum of integer multiples of parameters and dimensions"},
		{body("y[i] = 1 : { [i] : 0 <= 9007199254740993*i < N };"), "7:25: 9007199254740993 is too large; want at most 4503599627370496"},
		{body("y[i] = 1 : { [i] : 0 <= 1.5*i < N };"), "7:25: 1.5 is not an integer; an index or bound is affine"},
		{body("y[i] = j : { [i] : 0 <= i < N };"), "7:8: j is not declared"},
		{body("y[i] = x : { [i] : 0 <= i < N };"), "7:8: x is an array; want x[...]"},
		{body("y[i] = x[i,i] : { [i] : 0 <= i < N };"), "7:8: x has 2 indices here; want 1"},
		{body("y[i] = x[x[i]] : { [i] : 0 <= i < N };"), "7:10: index x[i] is not an integer; want floor(...)"},
		{body("y[i] = sin(x[i]) : { [i] : 0 <= i < N };"), "7:8: sin is not a function"},
		{body("y[i] = exp(x[i], 2) : { [i] : 0 <= i < N };"), "7:8: exp has 2 arguments here; want 1"},
		{body("y[i] = select(x[i], 1, 2) : { [i] : 0 <= i < N };"), "7:15: x[i] is not a condition; want a comparison such as x < y"},
		{body("y[i] = x[i] < 2 : { [i] : 0 <= i < N };"), "7:13: a condition is not a value; want select(condition, a, b)"},
		{body("y[i] = 1 + (x[i] < 2) : { [i] : 0 <= i < N };"), "7:18: x[i] < 2 is a condition, want a number"},
		{body("y[i] = 1 : { [i] : 0 <= i < N } if x[i];"), "7:36: x[i] is not a condition; want a comparison such as x == y"},
		{body("z[i] += x[i] : { [i] : 0 <= i < N };"), "7:9: z is of type int and the value is a float; want floor(...)"},
		{body("z[i] max= 1 : { [i] : 0 <= i < N };"), "7:1: z is of type int, and max= of nothing is infinite; want type float"},
		{body("y[i] draw(u[i])= 1 : { [i,k] : 0 <= i < N, 0 <= k < K };"), "7:1: y draws integers and is of type float"},
		{body("z[i] draw(u[i])= 1 : { [i] : 0 <= i < N };"), "7:1: all dimensions are in the index list; a draw is over one that is not"},
		{body("z[i] draw(u[i])= 1 : { [i,k,l] : 0 <= i < N, 0 <= k < K, 0 <= l < K };"), "7:1: a draw over both k and l; want one dimension that is not in the index list"},
		{"param N : N >= 1; input float u[N]; array int z[N]; output z; z[i] draw(u[i]*k)= 1 : { [i,k] : 0 <= i < N, 0 <= k < N };",
			"1:77: u[i]*k changes with k, which the draw is over; want one number for each element"},
		{body("z[i] += 1 : { [i] : 0 <= i < N };"), "7:1: z is written with += here and with = at 6:1; want one operator for an array"},
		{body("y[i] += 1 : { [i] : 0 <= i };"), "7:1: dimension i has no upper bound"},
		{body("y[i] += 1 : { [i,j] : 0 <= i < N, j < i };"), "7:1: dimension j has no lower bound"},
		{body("y[i] += 1 : { [i,a,b,c,d,e,f,g,h,j,k,l,m,n] : 0 <= i < N };"), "7:1: 14 dimensions; want at most 13"},
		{body("y[i] = x[i+1] : { [i] : 0 <= i < N };"), "7:8: index i+1 of x is 1, want 0 to 0, at N = 1, K = 1, i = 0"},
		{body("y[i-1] = 1 : { [i] : 0 <= i < N };"), "7:1: index i-1 of y is -1, want 0 to 0, at N = 1, K = 1, i = 0"},
		{body("y[i] = 1 : { [i] : 0 <= i < N } if x[2*i] == 1;"), "7:36: index 2*i of x is 2, want 0 to 1, at N = 2, K = 1, i = 1"},
		{body("y[0] = 1 : { [i] : 0 <= i < N };"), "7:1: y[0] is written twice: by 7:1, at N = 2, K = 1, i = 0, and by 7:1 at [1]"},
		{body("y[i] = 1 : { [i] : 0 <= i < N };\ny[N-1] = 2 : { [] : };"), "8:1: y[0] is written twice: by 7:1, at N = 1, K = 1, i = 0, and by 8:1 at []"},
		{"array float y[100]; output y; y[i] = 1 : { [i] : 0 <= i <= 100 };", "1:31: index i of y is 100, want 0 to 99, at i = 100"},
		{"input float x[100,40]; array float s[100]; output s; s[i] += x[i,j] : { [i,j] : 0 <= i < 100, 0 <= j, 3*j <= 2*i+1 };", "1:62: index j of x is 40, want 0 to 39, at i = 60, j = 40"},
		{"array float y[400]; output y; y[3*i+2*j+60] = 1 : { [i,j] : 0 <= i < 50, 0 <= j < 60, 7*j = 5*i + 3 }; y[3*i] = 1 : { [i] : 61 < i < 90 };", "1:104: y[207] is written twice: by 1:31, at i = 33, j = 24, and by 1:104 at [69]"},
		{"param N : N >= 50; array float y[N]; output y; y[i] = 1 : { [i] : 0 <= i <= N };", "1:48: index i of y is 50, want 0 to 49, at N = 50, i = 50"},
		{"param N : N >= 50; input float x[N,N]; array float y[N]; output y; y[i] = x[i,i+1] : { [i] : 0 <= i < N };", "1:75: index i+1 of x is 50, want 0 to 49, at N = 50, i = 49"},
		{"array float y[99]; output y; y[i] = 1 : { [i] : 0 <= i < 99 }; y[j+60] = 2 : { [j] : 0 <= j < 9 };",
			"1:64: y[60] is written twice: by 1:30, at i = 60, and by 1:64 at [0]"},
		{body("y[i] = " + strings.Repeat("(", 100000) + "1 : { [i] : 0 <= i < N };"), "7:508: an expression of more than 500 levels"},
		{"param N : N >= 1; input float u[N], x[N]; array int z[2*N]; output z; z[i+j] draw(u[i])= x[k] : { [i,j,k] : 0 <= i < N, 0 <= j < N, 0 <= k < N };",
			"1:71: z[1] is drawn twice: by 1:71, at N = 2, i = 0, j = 1, k = 0, and by 1:71 at [1 0 0]"},
		{body("y[i] = " + strings.Repeat("-", 100000) + "1 : { [i] : 0 <= i < N };"), "7:508: an expression of more than 500 levels"},
		{body("y[i] = 1" + strings.Repeat("+1", 100000) + " : { [i] : 0 <= i < N };"), "7:1008: an expression of more than 500 levels"},
		{body("y[i] = 1 : { [i] : 0 <= i < N" + strings.Repeat(", i != 3", 7) + " };"), "7:80: != splits the domain into more than 64 pieces"},
		{body("y[i] = 1 : { [i] : 0 <= i < N" + strings.Repeat(", i < 9", 64) + " };"), "7:1: a domain of 68 constraints; want at most 64"},
	} {
		_, err := Parse(c.source)
		if !errors.Is(err, ErrProgram) || err.Error() != c.want {
			source := c.source
			if len(source) > 400 {
				source = source[:400] + "..."
			}
			t.Errorf("%s\ngives %v, want\n%s", source, err, c.want)
		}
	}
}

// TestLongProducts reads products of many factors, of which twice the time for each factor would be without end.
func TestLongProducts(t *testing.T) {
	ones := strings.Repeat("*1", 300)
	p := parse(t, head+"array float y[N]; output y;\ny[i"+ones+"] = x[w[i]"+ones+"] : { [i] : 0 <= i"+ones+" < N };")
	if got, want := p.Statements[0].Index[0].String(), "i"; got != want {
		t.Errorf("index %s, want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, source := range programs {
		f.Add(source)
	}
	f.Add("param N; array int y[N]; output y; y[i] += i-1 : { [i,j] : 0 <= i < N, j = 3 } if i == 2 and j != i;")
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 2000 {
			t.Skip("longer programs take longer and show no more")
		}
		p, err := Parse(source)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		roundTrip(t, p)
	})
}
