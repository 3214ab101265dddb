package compile

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit/format/text"
	"github.com/pce-engine/pce/internal/golden"
	"github.com/pce-engine/pce/layers"
)

// TestPasses shows what each pass makes of small circuits. A command circuit
// compiles its input with the options block, groups and tolerance; those after
// it show parts of the program. The check at the end has a test of its own.
func TestPasses(t *testing.T) {
	for _, p := range passes[:len(passes)-1] {
		t.Run(p.name, func(t *testing.T) {
			var r *Result
			golden.Run(t, "testdata/"+p.file()+".txt", func(cmd string, args []string, input string) string {
				if cmd == "circuit" {
					var did string
					r, did = compileText(args, input)
					return did
				}
				if r == nil {
					return "no program"
				}
				show, ok := shows[cmd]
				if !ok {
					return "no such command"
				}
				var b strings.Builder
				show(&b, r)
				return b.String()
			})
		})
	}
}

// file is the name of a pass's files without their endings.
func (p *pass) file() string { return strings.ReplaceAll(p.name, " ", "_") }

// TestPassFiles: a pass is found by its name.
func TestPassFiles(t *testing.T) {
	for _, p := range passes {
		text, err := os.ReadFile(p.file() + ".go")
		if err != nil {
			t.Errorf("pass %q: %v", p.name, err)
			continue
		}
		words := strings.Fields(p.name)
		for i, w := range words[1:] {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
		if want := "func " + strings.Join(words, "") + "(s *state) (string, error) {"; !strings.Contains(string(text), want) {
			t.Errorf("%s.go does not hold %q", p.file(), want)
		}
	}
}

// TestCheck damages a program before the last pass, which reports it as a bug.
func TestCheck(t *testing.T) {
	m, err := text.Parse("circuit 1\na = input[2] x0 bernoulli\ns = sum a\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []func(*layers.Program){
		func(*layers.Program) {},
		func(p *layers.Program) { p.Layers[0].Sums[0].ChildIDs[0]++ },
		func(p *layers.Program) { p.Root = 99 },
		func(p *layers.Program) { p.NumParams-- },
	} {
		s := newState(m.Graph, DefaultOptions())
		for _, p := range passes[:len(passes)-1] {
			if _, err := p.run(s); err != nil {
				t.Fatal(err)
			}
		}
		before := s.prog.Digest()
		damage(s.prog)
		_, err := check(s)
		if damaged := s.prog.Digest() != before; (err != nil) != damaged || damaged && !strings.Contains(err.Error(), "BUG") {
			t.Errorf("damaged: %t, error %v", damaged, err)
		}
	}
}

func compileText(args []string, input string) (*Result, string) {
	m, err := text.Parse(input)
	if err != nil {
		return nil, err.Error()
	}
	o := DefaultOptions()
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		x, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, err.Error()
		}
		switch key {
		case "block":
			o.BlockSize = int(x)
		case "groups":
			o.MaxGroups = int(x)
		case "tolerance":
			o.PaddingTolerance = x
		default:
			return nil, "no such option: " + key
		}
	}
	r, err := Compile(m.Graph, o)
	if err != nil {
		return nil, err.Error()
	}
	var b strings.Builder
	for _, p := range r.Report.Passes {
		fmt.Fprintf(&b, "%-14s %s\n", p.Pass, p.Did)
	}
	return r, b.String()
}

var shows = map[string]func(*strings.Builder, *Result){
	"vectors": showVectors,
	"groups":  showGroups,
	"forward": func(b *strings.Builder, r *Result) {
		for _, l := range r.Program.Layers {
			fmt.Fprintf(b, "layer %d\n", l.Depth)
			for _, q := range l.Products {
				for i, id := range q.ElementIDs {
					fmt.Fprintf(b, "  e%d = product %s\n", id, ids("n", q.FactorIDs[i*q.MaxFactors:(i+1)*q.MaxFactors]))
				}
			}
			for _, q := range l.Sums {
				for i, id := range q.NodeIDs {
					row := [2]int{i * q.MaxChildren, (i + 1) * q.MaxChildren}
					fmt.Fprintf(b, "  n%d = sum %s by %s\n", id, ids("e", q.ChildIDs[row[0]:row[1]]), ids("w", q.ParamIDs[row[0]:row[1]]))
				}
			}
		}
	},
	"backward": func(b *strings.Builder, r *Result) {
		for _, l := range r.Program.Layers {
			fmt.Fprintf(b, "layer %d\n", l.Depth)
			for _, q := range l.Elements {
				for i, id := range q.ElementIDs {
					row := [2]int{i * q.MaxParents, (i + 1) * q.MaxParents}
					fmt.Fprintf(b, "  e%d feeds %s by %s\n", id, ids("n", q.ParentIDs[row[0]:row[1]]), ids("w", q.ParentParamIDs[row[0]:row[1]]))
				}
			}
		}
	},
	"parameters": func(b *strings.Builder, r *Result) {
		for i := range r.Map.Len() {
			offset, n := r.Map.Region(i)
			fmt.Fprintf(b, "node %d at %d, %d floats\n", r.Map.Node(i), offset, n)
		}
	},
}

func ids(prefix string, list []int32) string {
	words := make([]string, len(list))
	for i, x := range list {
		words[i] = prefix + strconv.Itoa(int(x))
		if x == 0 {
			words[i] = "-" // padding
		}
	}
	return strings.Join(words, " ")
}

func showVectors(b *strings.Builder, r *Result) {
	p := r.Program
	for i := range p.Vectors {
		v := &p.Vectors[i]
		fmt.Fprintf(b, "v%d  depth %d  %d units in blocks %d..%d  ", i, v.Depth, v.Units, v.First, v.First+v.Count-1)
		var elems []string
		add := func(e int32) {
			var fs []string
			for _, f := range p.ElementFactors(e) {
				fs = append(fs, "v"+strconv.Itoa(int(f)))
			}
			elems = append(elems, strings.Join(fs, "·"))
		}
		switch v.Kind {
		case layers.InputVector:
			in := &p.Inputs[v.Def]
			fmt.Fprintf(b, "%s x%d", in.Family.Name(), p.Columns[in.Column].Var)
			if in.Owner != v.Def {
				fmt.Fprintf(b, " tied to v%d", p.Inputs[in.Owner].Vector)
			}
		case layers.SumVector:
			s := &p.Sums[v.Def]
			for e := s.ElemLo; e < s.ElemHi; e++ {
				add(e)
			}
			fmt.Fprintf(b, "sum of %s, %v weights", strings.Join(elems, " + "), s.Fan)
			if s.Zeros {
				b.WriteString(", with zeros")
			}
			if s.Owner != v.Def {
				fmt.Fprintf(b, " tied to v%d", p.Sums[s.Owner].Vector)
			}
		case layers.StoredVector:
			add(p.Stored[v.Def].Element)
			fmt.Fprintf(b, "stored %s", elems[0])
		}
		if int32(i) == p.Root {
			b.WriteString(" (root)")
		}
		b.WriteByte('\n')
	}
}

func showGroups(b *strings.Builder, r *Result) {
	for i, l := range r.Report.Layers {
		fmt.Fprintf(b, "layer %d: %d node blocks with %v children in groups of %v, %d edges padded to %d\n",
			l.Depth, l.NodeBlocks, l.ChildCounts, l.Groups, l.Edges, l.Padded)
		q := r.Program.Layers[slices.IndexFunc(r.Program.Layers, func(x layers.Layer) bool { return int(x.Depth) == r.Report.Layers[i].Depth })]
		for _, s := range q.Sums {
			fmt.Fprintf(b, "  %d children: %s\n", s.MaxChildren, ids("n", s.NodeIDs))
		}
	}
}
