package layout

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// hidden are the packages whose types no user of the library sees.
var hidden = []string{"engine", "layers"}

// unlinked are packages that a program which imports the library does not carry: it
// registers those that it wants.
var unlinked = []string{
	"cluster", "cmd/pce", "configs", "dataset/digits", "dataset/parquet", "kernels/emulator", "kernels/kerneltest",
	"golang.org/x/image", "github.com/spf13", "github.com/nats-io", "github.com/parquet-go",
}

// TestFaceHidesEngines follows every type that the root package shows, through its
// aliases into run, and wants none of the hidden packages'.
func TestFaceHidesEngines(t *testing.T) {
	f := newFace(readTree(t), hidden)
	seen := f.follow(".")
	for _, name := range []string{".Model", "run.Options", "run.TrainOptions", "run.Result", "run.Structure", "run.Leaf", "run.Info", "run.MemoryPlan"} {
		if !slices.Contains(seen, name) {
			t.Errorf("%s was not looked at, only %v; the walk is broken", name, seen)
		}
	}
	for _, bad := range f.found {
		t.Errorf("%s; keep it in run, or give users something else", bad)
	}
	// run itself shows them: the walk would see one.
	f = newFace(readTree(t), hidden)
	if f.follow("run"); len(f.found) == 0 {
		t.Error("no type of engine or layers in run: the walk sees nothing")
	}
}

// TestFaceLinksLittle wants programs that import the root package to carry none of
// what is registered.
func TestFaceLinksLittle(t *testing.T) {
	links := map[string][]string{} // of a room, without its tests
	for _, s := range readTree(t) {
		if !s.test && s.ast != nil {
			links[s.room()] = append(links[s.room()], append(slices.Clone(s.imports), s.std...)...)
		}
	}
	why := map[string]string{".": "."} // the way there
	for queue := []string{"."}; len(queue) > 0; queue = queue[1:] {
		for _, to := range links[queue[0]] {
			if _, ok := why[to]; !ok {
				why[to] = why[queue[0]] + " > " + to
				queue = append(queue, to)
			}
		}
	}
	if len(why) < 30 || why["kernels/cpu/micro"] == "" {
		t.Fatalf("only %d packages are linked; the walk is broken", len(why))
	}
	for _, to := range slices.Sorted(maps.Keys(why)) {
		for _, bad := range unlinked {
			if to == bad || strings.HasPrefix(to, bad+"/") {
				t.Errorf("the root package links %s: %s; let programs register it", to, why[to])
			}
		}
	}
}

// face walks through the exported declarations of packages.
type face struct {
	hidden  []string
	decls   map[string]map[string]declared // by room and name
	methods map[string][]declared          // by room.type
	seen    map[string]bool
	found   []string // uses of hidden packages
}

// declared is a declaration in its file.
type declared struct {
	in   *source
	spec ast.Node // *ast.TypeSpec, *ast.FuncDecl or *ast.ValueSpec
}

func newFace(tree []*source, hidden []string) *face {
	f := &face{hidden: hidden, decls: map[string]map[string]declared{}, methods: map[string][]declared{}, seen: map[string]bool{}}
	for _, s := range tree {
		if s.test || s.ast == nil || s.room() != "." && s.room() != "run" {
			continue
		}
		room := s.room()
		if f.decls[room] == nil {
			f.decls[room] = map[string]declared{}
		}
		for _, d := range s.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					f.decls[room][d.Name.Name] = declared{s, d}
					continue
				}
				of := d.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				name := room + "." + of.(*ast.Ident).Name
				f.methods[name] = append(f.methods[name], declared{s, d})
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						f.decls[room][spec.Name.Name] = declared{s, spec}
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							f.decls[room][n.Name] = declared{s, spec}
						}
					}
				}
			}
		}
	}
	return f
}

// follow looks at all that a package exports, and returns what it has looked at.
func (f *face) follow(room string) []string {
	for _, name := range slices.Sorted(maps.Keys(f.decls[room])) {
		if token.IsExported(name) {
			f.look(room, name)
		}
	}
	return slices.Sorted(maps.Keys(f.seen))
}

// look follows the types of one declaration, and of the exported methods of a type.
func (f *face) look(room, name string) {
	key := strings.TrimPrefix(room, ".") + "." + name
	d, ok := f.decls[room][name]
	if !ok || f.seen[key] {
		return
	}
	f.seen[key] = true
	switch spec := d.spec.(type) {
	case *ast.FuncDecl:
		f.types(d.in, key, spec.Type)
	case *ast.ValueSpec:
		if spec.Type != nil {
			f.types(d.in, key, spec.Type)
		}
	case *ast.TypeSpec:
		f.types(d.in, key, spec.Type)
		for _, m := range f.methods[room+"."+name] {
			if fn := m.spec.(*ast.FuncDecl); fn.Name.IsExported() {
				f.types(m.in, key+"."+fn.Name.Name, fn.Type)
			}
		}
	}
}

// types follows the names in a type, but for those of unexported fields.
func (f *face) types(in *source, where string, t ast.Expr) {
	ast.Inspect(t, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
					f.types(in, where, field.Type)
				}
			}
			return false
		case *ast.SelectorExpr:
			to := imported(in, n.X.(*ast.Ident).Name)
			if slices.Contains(f.hidden, to) {
				f.found = append(f.found, where+" shows "+to+"."+n.Sel.Name)
			}
			f.look(to, n.Sel.Name)
			return false
		case *ast.Ident:
			f.look(in.room(), n.Name)
		}
		return true
	})
}

// imported returns the package of the module that a file calls name, "" for others.
func imported(in *source, name string) string {
	for _, spec := range in.ast.Imports {
		to, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), Module+"/")
		if ok && (spec.Name == nil && path.Base(to) == name || spec.Name != nil && spec.Name.Name == name) {
			return to
		}
	}
	return ""
}
