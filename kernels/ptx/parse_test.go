package ptx

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the text that there is to the golden files")

// sample is a module that uses every part of the form.
func sample() *Module {
	r := func(i int32) Operand { return Operand{Kind: RegOperand, Reg: Reg{R, i}} }
	d := func(i int32) Operand { return Operand{Kind: RegOperand, Reg: Reg{D, i}} }
	p := func(i int32) Operand { return Operand{Kind: RegOperand, Reg: Reg{P, i}} }
	sym := func(s string) Operand { return Operand{Kind: SymOperand, Symbol: s} }
	spec := func(s string) Operand { return Operand{Kind: SpecOperand, Symbol: s} }
	num := func(i int64) Operand { return Operand{Kind: IntOperand, Int: i} }
	at := func(reg Reg, off int64) Operand { return Operand{Kind: AddrOperand, Reg: reg, Int: off} }
	name := func(s string, off int64) Operand { return Operand{Kind: AddrOperand, Symbol: s, Int: off} }
	vec := func(rs ...int32) Operand {
		o := Operand{Kind: VecOperand}
		for _, i := range rs {
			o.Vec = append(o.Vec, Reg{R, i})
		}
		return o
	}
	return &Module{
		Major: 7, Minor: 4, Target: "sm_80",
		Dynamic: &Var{Name: "room", Align: 16},
		Kernels: []*Kernel{{
			Name:    "scale",
			Params:  []Param{{"x", U64}, {"n", U32}},
			Threads: 128, Blocks: 2,
			Regs:   [D + 1]int32{P: 2, H: 1, R: 8, D: 4},
			Shared: []Var{{"tile", 16, 1024}},
			Body: []Stmt{
				{Inst: &Inst{Op: "ld", Mods: []string{"param"}, Types: []Type{U64}, Args: []Operand{d(0), name("x", 0)}}},
				{Inst: &Inst{Op: "ld", Mods: []string{"param"}, Types: []Type{U32}, Args: []Operand{r(0), name("n", 0)}}},
				{Inst: &Inst{Op: "cvta", Mods: []string{"to", "global"}, Types: []Type{U64}, Args: []Operand{d(0), d(0)}}},
				{Inst: &Inst{Op: "mov", Types: []Type{U32}, Args: []Operand{r(1), spec("%tid.x")}}},
				{Inst: &Inst{Op: "mov", Types: []Type{U32}, Args: []Operand{r(2), sym("tile")}}},
				{Label: "L1"},
				{Inst: &Inst{Op: "setp", Mods: []string{"ge"}, Types: []Type{U32}, Args: []Operand{p(0), r(1), r(0)}}},
				{Inst: &Inst{Guard: Reg{P, 0}, Op: "bra", Args: []Operand{sym("L2")}}},
				{Inst: &Inst{Op: "mad", Mods: []string{"wide"}, Types: []Type{U32}, Args: []Operand{d(1), r(1), num(16), d(0)}}},
				{Inst: &Inst{Op: "ld", Mods: []string{"global", "nc", "L1::no_allocate", "v4"}, Types: []Type{F32}, Args: []Operand{vec(3, 4, 5, 6), at(Reg{D, 1}, 16)}}},
				{Inst: &Inst{Op: "mul", Mods: []string{"rn"}, Types: []Type{F32}, Args: []Operand{r(3), r(3), {Kind: F32Operand, Int: 0x3f800000}}}},
				{Inst: &Inst{Op: "mov", Types: []Type{F64}, Args: []Operand{d(3), {Kind: F64Operand, Int: -1 << 63}}}},
				{Inst: &Inst{Op: "st", Mods: []string{"shared", "v4"}, Types: []Type{F32}, Args: []Operand{name("tile", 32), vec(3, 4, 5, 6)}}},
				{Inst: &Inst{Op: "st", Mods: []string{"global"}, Types: []Type{F32}, Args: []Operand{at(Reg{D, 1}, -4), r(3)}}},
				{Inst: &Inst{Op: "cp.async", Mods: []string{"cg", "shared", "global"}, Args: []Operand{at(Reg{R, 2}, 0), at(Reg{D, 1}, 0), num(16)}}},
				{Inst: &Inst{Op: "cp.async", Mods: []string{"wait_all"}}},
				{Inst: &Inst{Op: "add", Types: []Type{S32}, Args: []Operand{r(1), r(1), num(-128)}}},
				{Inst: &Inst{Guard: Reg{P, 0}, Negated: true, Op: "bra", Args: []Operand{sym("L1")}}},
				{Label: "L2"},
				{Inst: &Inst{Op: "bar", Mods: []string{"sync"}, Args: []Operand{num(0)}}},
				{Inst: &Inst{Op: "ret"}},
			},
		}, {
			Name: "nothing",
			Body: []Stmt{{Inst: &Inst{Op: "exit"}}},
		}},
	}
}

// unlined clears what only the parser sets.
func unlined(m *Module) *Module {
	for _, k := range m.Kernels {
		for _, s := range k.Body {
			if s.Inst != nil {
				s.Inst.Line = 0
			}
		}
	}
	return m
}

// TestText compares the text of a module with the golden file, and what is read
// back from it with the module.
func TestText(t *testing.T) {
	const path = "testdata/scale.ptx"
	got := sample().Text()
	if *rewrite {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("Text() =\n%s\nwant\n%s", got, want)
	}
	m, err := Parse(got)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range m.Kernels[0].Body {
		if s.Inst == nil {
			continue
		}
		line := strings.Split(string(got), "\n")[s.Inst.Line-1]
		if strings.TrimSpace(line) != s.Inst.String() {
			t.Errorf("statement %d says line %d, which is %q; it is %q", i, s.Inst.Line, line, s.Inst)
		}
	}
	// Instructions share no memory that an append would write to.
	for _, s := range m.Kernels[0].Body {
		if s.Inst != nil {
			_ = append(s.Inst.Args, Operand{Kind: IntOperand, Int: 99})
			_ = append(s.Inst.Mods, "other")
			_ = append(s.Inst.Types, F16)
		}
	}
	if !reflect.DeepEqual(unlined(m), sample()) {
		t.Errorf("Parse(Text()) =\n%s", m.Text())
	}
}

// TestParseLoose reads text with blanks, comments and forms that Text does not
// print.
func TestParseLoose(t *testing.T) {
	text := "// first\n.version 8.0 .target sm_90a\r\n.address_size 64// third\n" +
		".visible .entry k ( ) { .shared .align 4 .b8 s[8]; .reg .b32 %r<2>; L1 : mov.b32 %r0 , 0xffffffff ; mov\n.b32\n%r1,-0;\n" +
		"@ ! %p01 bra L1; st.shared.b32 [ s + 0x4 ], %r0; cp.asynchronous; ret; } // end"
	if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "line 5") {
		t.Fatalf("an opcode over two lines: %v", err)
	}
	text = strings.Replace(text, "mov\n.b32\n%r1", "mov.b32\n%r1", 1)
	m, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	k := m.Kernels[0]
	var got []string
	for _, s := range k.Body {
		if s.Inst == nil {
			got = append(got, s.Label)
		} else {
			got = append(got, s.Inst.String())
		}
	}
	want := []string{"L1", "mov.b32 %r0, 4294967295;", "mov.b32 %r1, 0;", "@!%p1 bra L1;", "st.shared.b32 [s+4], %r0;", "cp.asynchronous;", "ret;"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("body %q, want %q", got, want)
	}
	if k.Body[3].Inst.Line != 6 || m.Major != 8 || m.Target != "sm_90a" {
		t.Errorf("line %d of version %d target %s", k.Body[3].Inst.Line, m.Major, m.Target)
	}
}

// TestParseErrors wants the line and the cure for text that is no module.
func TestParseErrors(t *testing.T) {
	const head = ".version 7.0\n.target sm_80\n.address_size 64\n"
	body := func(s string) string { return head + ".visible .entry k()\n{\n" + s + "\n}\n" }
	for _, tc := range []struct{ text, want string }{
		{"", "line 1: the end of the text; want .version"},
		{".version x", `line 1: "x"; want a version`},
		{".version 7.100", `line 1: "100"; want a version from 0 to 99`},
		{".version 7.0\n.targets sm_80", `line 2: ".targets"; want .target`},
		{".version 7.0\n.target sm_80\n.address_size 32", `line 3: "32"; want an address size`},
		{head + "visible", `line 4: "visible"; want .visible`},
		{head + "\x00", `line 4: "\x00"; want a kernel`},
		{head + ".extern .shared .align 16 .b8 x[4];", `line 4: "4];"; want "]"`},
		{head + ".extern .shared .align 0 .b8 x[];", "want an alignment"},
		{head + ".visible .entry 9()", "want the name of a kernel"},
		{head + ".visible .entry k(.param .x y)", `".x"; want a type`},
		{head + ".visible .entry k(.param .u32 %y)", "want the name of a parameter"},
		{head + ".visible .entry k(.param .u32 a .param .u32 b)", `want ","`},
		{head + ".visible .entry k() .maxntid 64, 2, 1 {}", "want threads in the other directions"},
		{head + ".visible .entry k() .maxntid 0, 1, 1 {}", "want threads from 1"},
		{head + ".visible .entry k() .minnctapersm 0 {}", "want blocks from 1"},
		{head + ".visible .entry k() {", "the end of the text; want a label, an instruction or }"},
		{body(".reg .f32 %f<4>;"), "want registers .pred %p"},
		{body(".reg .b32 %d<4>;"), "want registers .pred %p"},
		{body(".reg .b32 %r<4>;\n.reg .b32 %r<4>;"), "line 7:"},
		{body(".reg .b32 %r<1048577>;"), "want registers from 1 to 1048576"},
		{body(".shared .align 4 .b8 s[];"), "want a size"},
		{body(".shared .align 4 .b8 s[1073741825];"), "want a size"},
		{body("mov.b32 %r1048576, 0;"), "with a number below 1048576"},
		{body("mov.b32 %r1x, 0;"), "want a register"},
		{body("mov.b32 % r1, 0;"), "want a register"},
		{body("mov.b32 %, 0;"), "want a register"},
		{body("mov.u32 %r1, % tid.x;"), "want a register"},
		{body("mov.u32 %r1, %tid. x;"), "want a register"},
		{body("mov.b32 %r1 0;"), `line 6: "0;"; want ","`},
		{body("\nmov.b32 %r1, 0"), `line 8: "}"; want ","`},
		{body("mov.b32 %r1, 9223372036854775808;"), "want a number of 64 bits"},
		{body("mov.b32 %r1, -9223372036854775809;"), "want a number of 64 bits"},
		{body("mov.b32 %r1, 1u;"), "want a number of 64 bits"},
		{body("mov.f32 %r1, 0f3F80000;"), "want a number of 64 bits"},
		{body("mov.f32 %r1, 0f3F80000G;"), "want a number of 64 bits"},
		{body("mov.f32 %r1, -0f3F800000;"), "want a number of 64 bits"},
		{body("mov.f64 %d1, 0d3FF;"), "want a number of 64 bits"},
		{body("mov.f32.lo %r1, 0;"), `".lo"; want at most 16 parts of an opcode, types last`},
		{body("mov. %r1, 0;"), "parts of an opcode"},
		{body("mov" + strings.Repeat(".a", 17) + ";"), "at most 16 parts"},
		{body("mov" + strings.Repeat(".b32", 17) + ";"), "at most 16 parts"},
		{body("mov a, a, a, a, a, a, a, a, a;"), "want at most 8 operands"},
		{body("mov {%r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1, %r1};"), "want at most 8 registers"},
		{body("ld.b32 %r1, [4];"), "want the name of a variable, or a register"},
		{body("ld.b32 %r1, [%r1-4];"), `want "]"`},
		{body("ld.b32 %r1, [%r1+x];"), `"x];"; want a number`},
		{body("ld.b32 %r1, [%r1+0f00000000];"), "want an offset"},
		{body("@%r bra L;"), "want a register"},
		{body("%r1 = 4;"), "want a label, an instruction or }"},
		{body("mov.b32 %r1, &;"), "want an operand"},
		{body("L::x: ret;"), "want an operand"},
	} {
		m, err := Parse([]byte(tc.text))
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), tc.want) || m != nil {
			t.Errorf("Parse(%q) = %v, want %q", tc.text, err, tc.want)
		}
	}
}

// TestParseBounds refuses text whose module would be too large.
func TestParseBounds(t *testing.T) {
	if _, err := Parse(make([]byte, maxText+1)); !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), "67108865 bytes") {
		t.Errorf("a long text: %v", err)
	}
	text := ".version 7.0 .target sm_80 .address_size 64 .visible .entry k() {" + strings.Repeat("a:", maxStmts)
	if _, err := Parse([]byte(text + "}")); err != nil {
		t.Errorf("%d labels: %v", maxStmts, err)
	}
	if _, err := Parse([]byte(text + "a:}")); !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), "1048576 labels") {
		t.Errorf("%d labels: %v", maxStmts+1, err)
	}
}

// FuzzParse wants that text which is a module prints to text that is the same one.
func FuzzParse(f *testing.F) {
	f.Add(sample().Text())
	f.Add([]byte(".version 7.0 .target sm_80 .address_size 64 .visible .entry k() { L: @!%p0 bra L; x.a::b.f32 {}, [y+-1], %tid.x, 0x8; }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrSyntax) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("the error %q", err)
			}
			return
		}
		once := m.Text()
		again, err := Parse(once)
		if err != nil {
			t.Fatalf("%v in\n%s", err, once)
		}
		if twice := again.Text(); !bytes.Equal(once, twice) {
			t.Fatalf("printed\n%s\nread and printed\n%s", once, twice)
		}
		if !reflect.DeepEqual(unlined(m), unlined(again)) {
			t.Fatalf("two modules of one text\n%s", once)
		}
	})
}
