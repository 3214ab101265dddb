package asm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// listing is a program in Go's assembler and the bytes that this package makes of it.
type listing struct {
	text []string
	code [][]byte
}

func (l *listing) add(text string, emit func(c *Code)) {
	var c Code
	emit(&c)
	l.text, l.code = append(l.text, text), append(l.code, c.Bytes())
}

var gprNames = []string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"}

func (m Mem) text(w Width) string {
	s := fmt.Sprintf("%d(%s)", m.Disp, gprNames[m.Base])
	switch {
	case m.Scale == 0:
	case m.Vector:
		s += fmt.Sprintf("(%s*%d)", vector(w, Reg(m.Index)), m.Scale)
	default:
		s += fmt.Sprintf("(%s*%d)", gprNames[m.Index], m.Scale)
	}
	return s
}

func mask(k Mask) string { return "K" + strconv.Itoa(int(k)) }

func vector(w Width, r Reg) string { return string("XYZ"[w]) + strconv.Itoa(int(r)) }

// memories returns addresses of every kind: all bases, all indices, both sides of the largest short
// displacement.
func memories(unit int32) []Mem {
	var list []Mem
	for base := AX; base <= R15; base++ {
		for _, disp := range []int32{0, 1, unit, -128 * unit, -128*unit - 1, 127 * unit, 128 * unit, 127*unit + 1, 1 << 30} {
			list = append(list, Mem{Base: base, Disp: disp})
		}
		for index := AX; index <= R15; index++ {
			if index != SP {
				list = append(list, Mem{Base: base, Index: uint8(index), Scale: 1 << (index & 3), Disp: int32(index) * unit})
			}
		}
	}
	return list
}

// smaller returns a width that is less by some powers of 2.
func smaller(w Width, by byte) Width { return Width(max(int(w)-int(by), 0)) }

// vex lists an instruction with VEX prefix: registers of every number, then memories.
func (l *listing) vex(in *Inst) {
	for w := X; w <= Y; w++ {
		if in.widths>>w&1 == 0 {
			continue
		}
		emit := func(reg, v Reg, o Operand, name string) {
			l.operand(in, w, reg, v, o, name, func(c *Code, imm ...byte) { c.VEX(in, w, reg, v, o, imm...) })
		}
		if !in.onlyMem {
			name := func(r Reg) string {
				switch in.class {
				case fromGPR:
					return gprNames[r]
				case masksOnly:
					return mask(Mask(r))
				}
				return vector(smaller(w, in.shrinkRM), r)
			}
			if in.class == masksOnly {
				for r := range Reg(8) {
					emit(r, 0, R(7-r), name(7-r))
					emit(r, 7-r, R((r+5)%8), name((r+5)%8))
				}
			} else {
				for r := range Reg(16) {
					emit(r, 0, R(0), name(0))
					emit(0, r, R(0), name(0))
					emit(0, 0, R(r), name(r))
					emit(r, 15-r, R((r+5)%16), name((r+5)%16))
				}
			}
		}
		if in.noMem {
			continue
		}
		for i, m := range memories(1) {
			if in.form == FormGather {
				m = Mem{Base: m.Base, Index: uint8(i % 14), Scale: 1 << (i & 3), Vector: true, Disp: m.Disp}
			}
			if in.class == masksOnly {
				emit(7, 0, M(m), m.text(X))
				continue
			}
			emit(15, 14, M(m), m.text(in.indexWidth(w)))
		}
	}
}

// indexWidth is the width of the indices of a gather.
func (in *Inst) indexWidth(w Width) Width {
	if in.scalar == 8 {
		return smaller(w, 1)
	}
	return w
}

// evexes lists an instruction with EVEX prefix, under a mask, which Go's assembler does not
// encode otherwise.
func (l *listing) evexes(in *Inst) {
	for w := X; w <= Z; w++ {
		if in.widths>>w&1 == 0 {
			continue
		}
		emit := func(lanes Lanes, reg, v Reg, o Operand, name string) {
			suffix := ""
			if lanes.Broadcast {
				suffix += ".BCST"
			}
			if lanes.Zero {
				suffix += ".Z"
			}
			l.masked(in, w, lanes, suffix, reg, v, o, name)
		}
		k := Lanes{Mask: 3}
		if !in.onlyMem {
			for r := range Reg(32) {
				rm := func(r Reg) (Operand, string) { return R(r), vector(smaller(w, in.shrinkRM), r) }
				o, name := rm(0)
				emit(k, r, 0, o, name)
				emit(k, 0, r, o, name)
				o, name = rm(r)
				emit(k, 0, 0, o, name)
				o, name = rm((r + 5) % 32)
				emit(Lanes{Mask: Mask(1 + r%7), Zero: in.form != FormStore && in.class != toMask}, r, 31-r, o, name)
			}
		}
		if in.noMem {
			continue
		}
		for i, m := range memories(in.unit(w, false)) {
			if in.form == FormGather || in.form == FormScatter {
				m = Mem{Base: m.Base, Index: uint8(i % 30), Scale: 1 << (i & 3), Vector: true, Disp: m.Disp}
			}
			emit(k, 31, 30, M(m), m.text(in.indexWidth(w)))
		}
		if in.elem != 0 {
			for _, m := range memories(int32(in.elem)) {
				emit(Lanes{Mask: 2, Broadcast: true}, 17, 9, M(m), m.text(X))
			}
		}
	}
}

// destination returns the name of the register reg.
func (in *Inst) destination(w Width, reg Reg) string {
	switch in.class {
	case toGPR:
		return gprNames[reg]
	case toMask, masksOnly:
		return mask(Mask(reg))
	}
	return vector(smaller(w, in.shrinkReg), reg)
}

func (in *Inst) mnemonic(w Width) string {
	if in.suffix && w != Z {
		return in.Name + string("XY"[w])
	}
	return in.Name
}

// operand adds an instruction with VEX prefix.
func (l *listing) operand(in *Inst, w Width, reg, v Reg, o Operand, name string, emit func(c *Code, imm ...byte)) {
	var args []string
	var imm []byte
	if in.imm {
		imm = []byte{byte(len(l.text)) & 3}
		args = append(args, fmt.Sprintf("$%d", imm[0]))
	}
	second := vector(w, v)
	dst := in.destination(w, reg)
	switch in.form {
	case FormLoad:
		if v != 0 {
			return
		}
		args = append(args, name, dst)
	case FormStore:
		if v != 0 {
			return
		}
		args = append(args, dst, name)
	case FormTwo:
		switch {
		case in == Join:
			second = vector(Y, v)
		case in.class == masksOnly:
			second = mask(Mask(v))
		}
		args = append(args, name, second, dst)
	case FormShift:
		if reg != 0 {
			return
		}
		args = append(args, name, second)
	case FormBlend:
		imm = []byte{byte(len(l.text)&15) << 4}
		args = append(args, vector(w, Reg(imm[0]>>4)), name, second, dst)
	case FormGather:
		args = append(args, second, name, dst)
	}
	l.add(in.mnemonic(w)+" "+strings.Join(args, ", "), func(c *Code) { emit(c, imm...) })
}

// masked adds an instruction with EVEX prefix.
func (l *listing) masked(in *Inst, w Width, lanes Lanes, suffix string, reg, v Reg, o Operand, name string) {
	var args []string
	var imm []byte
	if in.imm {
		imm = []byte{byte(len(l.text)) & 3}
		args = append(args, fmt.Sprintf("$%d", imm[0]))
	}
	if in.class == toMask {
		reg &= 7
	}
	k, dst := mask(lanes.Mask), in.destination(w, reg)
	switch in.form {
	case FormLoad:
		if v != 0 && !o.isMem && lanes.Zero {
			v = 0
		}
		if o.isMem {
			v = 0
		}
		if v != 0 {
			return
		}
		args = append(args, name, k, dst)
	case FormStore:
		if o.isMem {
			v = 0
		}
		if v != 0 {
			return
		}
		args = append(args, dst, k, name)
	case FormTwo:
		args = append(args, name, vector(w, v), k, dst)
	case FormShift:
		if reg != 0 {
			return
		}
		args = append(args, name, k, vector(w, v))
	case FormGather:
		if lanes.Zero {
			return
		}
		v = 0
		args = append(args, name, k, dst)
	case FormScatter:
		if lanes.Zero {
			return
		}
		v = 0
		args = append(args, dst, k, name)
	default:
		return
	}
	l.add(in.mnemonic(w)+suffix+" "+strings.Join(args, ", "), func(c *Code) { c.EVEX(in, w, lanes, reg, v, o, imm...) })
}

// generals lists the instructions of general registers.
func (l *listing) generals() {
	for g := AX; g <= R15; g++ {
		n := gprNames[g]
		for _, m := range memories(1) {
			o := M(m)
			l.add(fmt.Sprintf("MOVQ %s, %s", m.text(X), n), func(c *Code) { c.Load(g, o) })
			l.add(fmt.Sprintf("MOVL %s, %s", m.text(X), n), func(c *Code) { c.LoadNarrow(g, o) })
			l.add(fmt.Sprintf("MOVBLZX %s, %s", m.text(X), n), func(c *Code) { c.LoadByte(g, o) })
			l.add(fmt.Sprintf("MOVWLZX %s, %s", m.text(X), n), func(c *Code) { c.LoadWord(g, o) })
			l.add(fmt.Sprintf("LEAQ %s, %s", m.text(X), n), func(c *Code) { c.Address(g, o) })
			l.add(fmt.Sprintf("MOVQ %s, %s", n, m.text(X)), func(c *Code) { c.Store(o, g) })
			l.add(fmt.Sprintf("ADDQ %s, %s", m.text(X), n), func(c *Code) { c.Add(g, o) })
			l.add(fmt.Sprintf("CMPQ %s, %s", n, m.text(X)), func(c *Code) { c.Cmp(g, o) })
			if g == AX {
				l.add(fmt.Sprintf("SUBQ $3, %s", m.text(X)), func(c *Code) { c.SubMem(o, 3) })
				l.add(fmt.Sprintf("MOVQ $70000, %s", m.text(X)), func(c *Code) { c.StoreImm(o, 70000) })
			}
			l.add(fmt.Sprintf("IMUL3Q $1000000, %s, %s", m.text(X), n), func(c *Code) { c.Mul(g, o, 1000000) })
		}
		l.add(fmt.Sprintf("ADDQ $7, %s", n), func(c *Code) { c.AddImm(g, 7) })
		l.add(fmt.Sprintf("SUBQ $-7, %s", n), func(c *Code) { c.SubImm(g, -7) })
		l.add(fmt.Sprintf("SHRQ $32, %s", n), func(c *Code) { c.Shr(g, 32) })
		l.add(fmt.Sprintf("MOVL %s, R10", n), func(c *Code) { c.MoveNarrow(R10, g) })
		l.add(fmt.Sprintf("MOVBLZX R10, %s", n), func(c *Code) { c.LoadByte(g, G(R10)) })
		l.add(fmt.Sprintf("TESTL %s, %s", n, n), func(c *Code) { c.Test(g) })
		l.add(fmt.Sprintf("IMUL3Q $1000000, %s, R9", n), func(c *Code) { c.Mul(R9, G(g), 1000000) })
	}
	for k := range Mask(8) {
		l.add(fmt.Sprintf("KXNORW %s, %s, %s", mask(k), mask(k), mask(k)), func(c *Code) { c.MaskOnes(k) })
	}
	l.add("VZEROUPPER", (*Code).VZeroUpper)
	l.add("RET", (*Code).Ret)
}

var (
	instructionLine = regexp.MustCompile(`^\t0x([0-9a-f]+) \d+ \(.*:(\d+)\)`)
	dumpLine        = regexp.MustCompile(`^\t0x([0-9a-f]+)((?: [0-9a-f]{2})+)  `)
)

// assemble returns the bytes that Go's assembler makes of each line.
func assemble(t *testing.T, text []string) [][]byte {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "f.s")
	body := "TEXT f(SB), 4, $0\n" + strings.Join(text, "\n") + "\n"
	if err := os.WriteFile(source, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "tool", "asm", "-p", "f", "-S", "-o", filepath.Join(dir, "f.o"), source)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.CombinedOutput()
	if err != nil {
		if _, found := exec.LookPath("go"); found != nil {
			t.Skip("SKIPPED: no go command in PATH, whose assembler the bytes are compared with; install Go")
		}
		t.Fatalf("go tool asm: %v\n%.2000s", err, out)
	}
	at := make([]int, len(text)+1)
	var all []byte
	for _, line := range strings.Split(string(out), "\n") {
		if m := instructionLine.FindStringSubmatch(line); m != nil {
			offset, _ := strconv.ParseInt(m[1], 16, 64)
			number, _ := strconv.Atoi(m[2])
			if number >= 2 {
				at[number-2] = int(offset)
			}
		} else if m := dumpLine.FindStringSubmatch(line); m != nil {
			for _, b := range strings.Fields(m[2]) {
				x, _ := strconv.ParseUint(b, 16, 8)
				all = append(all, byte(x))
			}
		}
	}
	at[len(text)] = len(all)
	code := make([][]byte, len(text))
	for i := range code {
		if at[i] > at[i+1] {
			t.Fatalf("line %d lies at %d, the next at %d", i, at[i], at[i+1])
		}
		code[i] = all[at[i]:at[i+1]]
	}
	return code
}

// TestBytes compares every instruction, with every register and every kind of address, with the
// bytes of Go's assembler.
func TestBytes(t *testing.T) {
	lists := map[string]func(l *listing){
		"general": (*listing).generals,
		"VEX": func(l *listing) {
			for _, in := range all {
				if in.vex {
					l.vex(in)
				}
			}
		},
		"EVEX": func(l *listing) {
			for _, in := range all {
				if in.evex {
					l.evexes(in)
				}
			}
		},
	}
	for name, fill := range lists {
		t.Run(name, func(t *testing.T) {
			var l listing
			fill(&l)
			if len(l.text) < 1000 {
				t.Fatalf("only %d instructions", len(l.text))
			}
			if testing.Short() { // a prime, so that all operands have their turn
				l.text, l.code = every(l.text, 7), every(l.code, 7)
			}
			wrong := 0
			for i, want := range assemble(t, l.text) {
				if !bytes.Equal(l.code[i], want) {
					if wrong++; wrong <= 20 {
						t.Errorf("%s: % x, want % x", l.text[i], l.code[i], want)
					}
				}
			}
			t.Logf("%d instructions, %d wrong", len(l.text), wrong)
		})
	}
}

// every is each n-th element of a list.
func every[T any](list []T, n int) []T {
	var out []T
	for i := 0; i < len(list); i += n {
		out = append(out, list[i])
	}
	return out
}

// TestJumps compares jumps forwards and backwards with their distances by hand.
func TestJumps(t *testing.T) {
	var c Code
	top, end := c.Label(), c.Label()
	c.Here(top)
	c.JumpIf(Zero, end)
	c.Jump(top)
	c.JumpIf(NotZero, top)
	c.JumpIf(Below, end)
	c.Here(end)
	c.Ret()
	want := []byte{
		0x0F, 0x84, 17, 0, 0, 0,
		0xE9, 0xF5, 0xFF, 0xFF, 0xFF,
		0x0F, 0x85, 0xEF, 0xFF, 0xFF, 0xFF,
		0x0F, 0x82, 0, 0, 0, 0,
		0xC3,
	}
	if got := c.Bytes(); !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
	if c.Len() != len(want) {
		t.Errorf("%d bytes, want %d", c.Len(), len(want))
	}
}
