package simt_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/simt/simttest"
)

// example has every construct of the language.
const example = `module "an \"example\""
input x f32 columns 5
input n u8 rows 2
input w f64 rows 3
output y f64 rows 1
output k i32 columns 2
output z f64 rows 2
table t f64 0x1p-01 -0x1.8p+01 +Inf nan:7ff8000000000001
table i i32 -1 7
%0 = load x 3
%1 = const f32 0x1p-01
%2 = lt %0 %1
%3 %9 = if %2 {
  %10 = fma %0 %1 %1
  yield %10 %2
} else {
  yield %0 %2
}
%5 = loop 10 %4 = %3 {
  %6 = add %4 %4
  %7 = lt %6 %1
  store k 1 %16
  next %7 %6
}
%8 = convert f64 %5
%11 = load n 1
%12 = convert i32 %11
%13 = gather t %12
%14 = select %9 %8 %13
store y 0 %14
%15 = const pred 1
loop 2 {
  next %15
}
%17 = bitcast i32 %1
%18 = shr %17 31
%19 = loadat w %17
storeat z %17 %19
store y 0 %19
store k 0 %18
`

// defined moves the use of %16 behind its definition.
var defined = strings.Replace(example, "%5 = loop", "%16 = const i32 -3\n%5 = loop", 1)

func TestTextRoundTrip(t *testing.T) {
	m, err := simt.Parse("# a comment\n\n" + strings.ReplaceAll(defined, "\n", " \r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Text(); got != defined {
		t.Errorf("text is\n%s, want\n%s", got, defined)
	}
	if _, err := simt.Compile(m, 1); err != nil {
		t.Error(err)
	}
	for seed := range uint64(60) {
		m := simttest.Random(t, rand.New(rand.NewPCG(seed, 2)), 50)
		back, err := simt.Parse(m.Text())
		if err != nil {
			t.Fatal(err)
		}
		if back.Text() != m.Text() || !slices.Equal(back.Types, m.Types) {
			t.Fatalf("seed %d:\n%s\nreads back as\n%s", seed, m.Text(), back.Text())
		}
	}
}

// TestParseRefuses damages the example, a line at a time.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"module", "program", "want module"},
		{"\"an", "an", "name in quotes"},
		{"x f32 columns 5", "x f32 columns", "number of columns"},
		{"x f32 columns 5", "x f16 columns 5", "one of the types"},
		{"x f32 columns 5", "x f32 diagonals 5", "rows or columns"},
		{"x f32 columns 5", "x f32 columns 0", "input 0 is 0 columns"},
		{"x f32 columns 5", "x pred columns 5", "a type but pred"},
		{"x f32 columns 5", "1x f32 columns 5", "no input"},
		{"input n", "input 1x u8 rows 1\ninput n", "a letter first"},
		{"input n", "input x u8 rows 1\ninput n", "named x"},
		{"table i i32 -1 7", "table i i32", "at least one element"},
		{"table i i32 -1 7", "table i i32 1 0x2", "not an element"},
		{"table i i32 -1 7", "table i f32 nan:0", "not an element"},
		{"load x 3", "load x 5", "5 columns"},
		{"load x 3", "load z 3", "no input"},
		{"load x 3", "load x", "want load"},
		{"load x 3", "load x -1", "number of a column"},
		{"const f32 0x1p-01", "const f32 one", "not a number"},
		{"const f32 0x1p-01", "const f64 0x1p-01", "operands of types"},
		{"lt %0 %1", "lt %0", "want 2"},
		{"lt %0 %1", "lt %0 %99", "before it is defined"},
		{"lt %0 %1", "lt %0 1", "want a value"},
		{"lt %0 %1", "and %0 %1", "does not take operands"},
		{"lt %0 %1", "tl %0 %1", "unknown operation"},
		{"%2 = lt", "%1 = lt", "defined twice"},
		{"%2 = lt", "%2000 = lt", "before it is defined"},
		{"%18 = shr", "%21 = shr", "before it is defined"},
		{"store k 0 %18", "%22 = const i32 1", "without gaps"},
		{"%3 %9 = if", "%3 = if", "results"},
		{"if %2 {", "if %0 {", "condition of type f32"},
		{"if %2 {", "if %2", "want if"},
		{"  yield %0 %2\n", "  yield %2 %2\n", "another type"},
		{"  yield %0 %2\n", "", "want yield"},
		{"  yield %10 %2\n}", "  yield %10 %2\n", "want } else {"},
		{"loop 10", "loop 0", "want 1 to"},
		{"loop 10", "loop many", "number of turns"},
		{"loop 10 %4 = %3", "loop 10 %4 %3", "want loop"},
		{"next %7 %6", "next %6 %6", "want pred"},
		{"next %7 %6", "next %7", "want as many"},
		{"next %7 %6", "next", "want a condition"},
		{"next %7 %6\n}", "next %7 %6\n", "want }"},
		{"convert f64 %5", "convert f32 %5", "another type"},
		{"convert f64 %5", "convert f64 %10", "outside the block"},
		{"loadat w %17", "loadat w %11", "an index of i32"},
		{"loadat w %17", "loadat v %17", "no input"},
		{"loadat w %17", "loadat n %17", "i32 or i64 by rows"},
		{"loadat w %17", "loadat", "an input and an index"},
		{"input w f64 rows 3", "input w f64 columns 3", "by columns"},
		{"storeat z %17", "storeat z %19", "a column of f64"},
		{"storeat z %17 %19", "storeat k %17 %17", "which has i32 by columns"},
		{"storeat z %17 %19", "storeat z %17", "want storeat"},
		{"storeat z %17 %19", "storeat u %17 %19", "no output"},
		{"gather t %12", "gather t %11", "index of i32"},
		{"gather t %12", "gather u %12", "no table"},
		{"select %9 %8 %13", "select %9 %8 %0", "one type"},
		{"store y 0 %14", "store y 1 %14", "column 1"},
		{"store y 0 %14", "store y 0", "want store"},
		{"bitcast i32 %1", "bitcast i64 %1", "reads f32 as i64"},
		{"shr %17 31", "shr %17 32", "constant 0x20"},
		{"store k 0 %18\n", "store k 0 %18\n}\n", "outside a block"},
	} {
		text := strings.Replace(defined, c.old, c.new, 1)
		if text == defined {
			t.Errorf("%q is not in the example", c.old)
			continue
		}
		_, err := simt.Parse(text)
		if !errors.Is(err, simt.ErrModule) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q for %q: error is %q, want one line with %q", c.new, c.old, err, c.want)
		}
	}
	if _, err := simt.Parse("module \"\"\n"); !errors.Is(err, simt.ErrModule) || !strings.Contains(err.Error(), "no outputs") {
		t.Errorf("an empty module: %v", err)
	}
	deep := "module \"\"\noutput y f32 rows 1\n%0 = const pred 1\n" + strings.Repeat("if %0 {\n", 1<<16)
	if _, err := simt.Parse(deep); !errors.Is(err, simt.ErrModule) {
		t.Errorf("deep blocks: %v", err)
	}
}

// FuzzParse: a text is a module that prints as itself, or an error of one line.
func FuzzParse(f *testing.F) {
	f.Add(defined)
	f.Add(simttest.Random(f, rand.New(rand.NewPCG(1, 1)), 40).Text())
	f.Fuzz(func(t *testing.T, text string) {
		m, err := simt.Parse(text)
		if err != nil {
			if !errors.Is(err, simt.ErrModule) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error is %q", err)
			}
			return
		}
		back, err := simt.Parse(m.Text())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, m) {
			t.Fatalf("%+v\nreads back as\n%+v", m, back)
		}
	})
}
