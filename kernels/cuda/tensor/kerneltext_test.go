package tensor_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kernelText is the text of a kernel.
type kernelText struct {
	name  string
	lines []string
	insts []int // lines that are instructions

	labels map[string]int // their lines
}

// entry begins each kernel.
const entry = ".visible .entry "

// split cuts the text of a module into what stands before the kernels, and them.
func split(text string) (head string, list []*kernelText) {
	parts := strings.Split(text, "\n"+entry)
	for _, part := range parts[1:] {
		name, _, _ := strings.Cut(part, "(")
		k := &kernelText{name: name, lines: strings.Split(entry+part, "\n"), labels: map[string]int{}}
		for i, line := range k.lines {
			if strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "\t.") {
				k.insts = append(k.insts, i)
			} else if label, ok := strings.CutSuffix(line, ":"); ok {
				k.labels[label] = i
			}
		}
		list = append(list, k)
	}
	return parts[0] + "\n", list
}

// without returns the text of the kernel less a line.
func (k *kernelText) without(line int) string {
	return strings.Join(slices.Delete(slices.Clone(k.lines), line, line+1), "\n")
}

// nameless returns a line without the numbers of registers and labels.
func (k *kernelText) nameless(line int) string {
	return numbers.ReplaceAllString(strings.TrimSpace(k.lines[line]), "$1")
}

// instruction is a line as far as unread needs it.
type instruction struct {
	guard  string
	opcode string
	writes []string // registers
	reads  []string // the guard's too
}

var (
	// silent are those whose first operand is read.
	silent      = regexp.MustCompile(`^(st|bra|red|cp)\b`)
	register    = regexp.MustCompile(`%[phrd]\d+`)
	numbers     = regexp.MustCompile(`(%[phrd]|\bL)\d+`)
	destination = regexp.MustCompile(`^\s*(\{[^}]*\}|%[phrd]\d+(\|%[phrd]\d+)?)`)
	// acting are the instructions that do more than to write registers.
	acting = regexp.MustCompile(`^(st|bra|ret|exit|trap|bar|membar|fence|red|atom|cp|griddepcontrol|shfl|vote|redux|mma|ldmatrix)\b`)
)

func (k *kernelText) instruction(line int) instruction {
	text := strings.TrimSpace(k.lines[line])
	in := instruction{}
	if strings.HasPrefix(text, "@") {
		guard, rest, _ := strings.Cut(text, " ")
		in.guard, text = guard, rest
		in.reads = register.FindAllString(guard, -1)
	}
	var rest string
	in.opcode, rest, _ = strings.Cut(strings.TrimSuffix(text, ";"), " ")
	if to := destination.FindString(rest); to != "" && !silent.MatchString(in.opcode) {
		in.writes, rest = register.FindAllString(to, -1), rest[len(to):]
	}
	in.reads = append(in.reads, register.FindAllString(rest, -1)...)
	return in
}

// unread reports whether a line does no more than to write registers that, on every
// way from there, something else writes before anything reads them.
func (k *kernelText) unread(line int) bool {
	in := k.instruction(line)
	if acting.MatchString(in.opcode) {
		return false
	}
	for _, r := range in.writes {
		if k.reads(r, line+1, map[int]bool{}) {
			return false
		}
	}
	return true
}

// reads reports whether something on a way from a line on reads a register before it
// is written.
func (k *kernelText) reads(register string, line int, seen map[int]bool) bool {
	for ; !seen[line] && k.lines[line] != "}"; line++ {
		seen[line] = true
		if !strings.HasPrefix(k.lines[line], "\t") {
			continue
		}
		in := k.instruction(line)
		switch {
		case slices.Contains(in.reads, register):
			return true
		case in.guard == "" && slices.Contains(in.writes, register):
			return false
		case in.opcode == "bra":
			label := strings.TrimSuffix(k.lines[line][strings.LastIndex(k.lines[line], " ")+1:], ";")
			if k.reads(register, k.labels[label], seen) {
				return true
			}
			if in.guard == "" {
				return false
			}
		case (in.opcode == "ret" || in.opcode == "exit" || in.opcode == "trap") && in.guard == "":
			return false
		}
	}
	return false
}

// TestUnread finds the lines of a kernel whose results nothing reads.
func TestUnread(t *testing.T) {
	_, list := split(`.version 7.0

.visible .entry k(
	.param .u64 a
)
{
	.reg .b32 %r<4>;
	mov.u32 %r0, 0;
	mov.u32 %r1, 1;
	mov.u32 %r2, 2;
	setp.lt.u32 %p0, %r1, 3;
	@%p0 mov.u32 %r2, 5;
	@%p0 bra L1;
	mov.u32 %r0, %r2;
	add.u32 %r3, %r0, 1;
L1:
	st.global.u32 [%d0], %r0;
	mov.u32 %r1, 7;
	ret;
}
`)
	k := list[0]
	var dead []string
	for _, line := range k.insts {
		if k.unread(line) {
			dead = append(dead, strings.TrimSpace(k.lines[line]))
		}
	}
	if want := []string{"add.u32 %r3, %r0, 1;", "mov.u32 %r1, 7;"}; !slices.Equal(dead, want) {
		t.Errorf("nothing reads %q, want %q", dead, want)
	}
}
