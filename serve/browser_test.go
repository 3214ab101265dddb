package serve

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/dataset"
)

// pageServer serves the gallery, and returns its address.
func pageServer(t *testing.T, o Options) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"digits", "table", "wide", "one", "hard"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		o.Models = append(o.Models, Source{Name: name, Path: path})
	}
	o.Loader, o.Version, o.Hosts, o.MaxQueueDelay = gallery{}, "pce test", LoopbackHosts, -1
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return h.URL + "/"
}

// loaded is true once the page can be used.
const loaded = `!document.getElementById("ask").disabled && document.querySelectorAll("#models article").length === 5`

// answered is true once an answer, or a problem, is shown.
const answered = `document.querySelector("#answer .asked, #answer .problem") && !document.getElementById("ask").disabled`

// choose selects an option as a user does.
func (p *tab) choose(id, value string) {
	p.Helper()
	p.eval(fmt.Sprintf(`(() => {
		const e = document.getElementById(%q);
		if (![...e.options].some((o) => o.value === %[2]q)) throw new Error("no option " + %[2]q);
		e.value = %[2]q;
		e.dispatchEvent(new Event("change", { bubbles: true }));
	})()`, id, value), nil)
}

// ask asks a query and returns the text of the answer.
func (p *tab) ask(query string) (answer string) {
	p.Helper()
	p.choose("query", query)
	p.eval(`document.getElementById("answer").replaceChildren()`, nil)
	p.click("#ask")
	p.wait(answered)
	p.eval(`document.getElementById("answer").innerText`, &answer)
	return answer
}

// shades returns the grey of some pixels of a canvas, by their numbers.
func (p *tab) shades(canvas string, pixels ...int) (grey []int) {
	p.Helper()
	p.eval(fmt.Sprintf(`(() => {
		const c = document.querySelector(%q), [w, h, s] = [c.width, c.height, c.width / 28];
		const d = c.getContext("2d").getImageData(0, 0, w, h).data;
		return %s.map((i) => d[4 * (Math.floor(i / 28) * s * w + (i %% 28) * s)]);
	})()`, canvas, strings.ReplaceAll(fmt.Sprint(pixels), " ", ",")), &grey)
	return grey
}

// cellCode is the whole number in a cell of the row.
func cellCode(t *testing.T, cell string) int {
	t.Helper()
	n, err := strconv.Atoi(cell)
	if err != nil {
		t.Error(err)
	}
	return n
}

// TestBrowser uses the page as people do, in a headless Chromium.
func TestBrowser(t *testing.T) {
	b := startBrowser(t)
	url := pageServer(t, Options{})

	t.Run("images", func(t *testing.T) {
		p := b.open(t, url, 1180, 900)
		p.wait(loaded + ` && document.getElementById("health").textContent === "ready"`)
		if got := p.ask("log_prob"); !strings.Contains(got, "7.84") { // all 784 cells are missing
			t.Errorf("log_prob of nothing: %s", got)
		}
		p.click("#draw")
		p.wait(`document.getElementById("row").value !== ""`)
		p.choose("keep", "top")
		var cells string
		p.eval(`document.getElementById("row").value`, &cells)
		list := strings.Split(cells, ",")
		if len(list) != 784 || list[391] == "" || list[392] != "" {
			t.Errorf("%d cells; the last of the upper half is %q, the next %q", len(list), list[391], list[392])
		}
		// The seed of the drawn row is random, and so is how bright its ring is here.
		ring, hole := 13*28+6, 13*28+13
		shown := []int{cellCode(t, list[ring]), cellCode(t, list[hole])}
		if grey := p.shades("#canvas", ring, hole, 20*28+6); !slices.Equal(grey[:2], shown) || grey[2] != 150 && grey[2] != 105 {
			t.Errorf("the evidence is drawn as %v, and its cells are %v", grey, shown)
		}
		if got := p.ask("sample"); !strings.Contains(got, "seed") {
			t.Errorf("sample: %s", got)
		}
		var pictures int
		p.eval(`document.querySelectorAll("#answer canvas").length`, &pictures)
		if grey := p.shades("#answer canvas", ring, hole); pictures != 8 || !slices.Equal(grey, shown) {
			t.Errorf("%d pictures, the first %v, and the cells that it was given are %v", pictures, grey, shown)
		}
		p.picture("images")
		if got := p.ask("mpe"); !strings.Contains(got, "mpe exact false") || !strings.Contains(got, "Most probable") {
			t.Errorf("mpe: %s", got)
		}
		if got := p.ask("moments"); !strings.Contains(got, "Variance") || !strings.Contains(got, "Black is") {
			t.Errorf("moments: %s", got)
		}
		p.ask("marginal")
		p.choose("query", "conditional")
		p.choose("input-query_mask", "left")
		p.click("#ask")
		p.wait(`document.querySelector("#answer .big")?.textContent === "392"`)
		// Pixels that are painted over are missing.
		p.choose("keep", "all")
		p.click("#canvas")
		p.eval(`document.getElementById("row").value`, &cells)
		if hidden := strings.Count(","+cells+",", ",,"); hidden == 0 || strings.Split(cells, ",")[14*28+14] != "" {
			t.Errorf("%d cells are hidden, the one in the middle is %q", hidden, strings.Split(cells, ",")[14*28+14])
		}
	})

	t.Run("table", func(t *testing.T) {
		p := b.open(t, url, 1180, 900)
		p.wait(loaded)
		p.choose("model", "table")
		p.wait(`document.getElementById("cell-3") && !document.getElementById("ask").disabled`)
		p.choose("cell-0", "mid")
		p.choose("cell-1", "20")
		p.eval(`document.getElementById("cell-3").focus()`, nil)
		p.write("-1.5")
		if got := p.ask("log_prob"); !strings.Contains(got, "−0.49") { // codes 1 and 1, 0.01 for what is missing, and 1.5
			t.Errorf("log_prob: %s", got)
		}
		if got := p.ask("sample"); !strings.Contains(got, "mid\t20\t") {
			t.Errorf("sample: %s", got)
		}
		p.picture("table")
		if got := p.ask("marginal"); strings.Contains(got, "score") || !strings.Contains(got, "</option><b>high") || !strings.Contains(got, "<img src=x onerror=alert(1)>") {
			t.Errorf("marginal: %s", got)
		}
		p.picture("table-marginal")
		p.choose("query", "conditional")
		p.eval(`document.getElementById("input-query_mask").value = "level, 4"`, nil)
		p.click("#ask")
		p.wait(`document.querySelector("#answer .big")?.textContent === "2"`)
		p.eval(`document.getElementById("input-query_mask").value = "level, 5"`, nil)
		p.click("#ask")
		p.wait(`document.querySelector("#answer .problem")?.textContent.includes("“5” is not a column")`)
		p.choose("query", "classify")
		p.choose("parameter-class", "level")
		p.click("#ask")
		p.wait(`document.querySelector("#answer .big")?.textContent === "</option><b>high" && document.querySelectorAll("#answer tbody tr").length === 3`)
		p.picture("table-classify")
		p.choose("query", "covariance")
		p.eval(`document.getElementById("parameter-of").value = "level,2,3,4"`, nil) // numbers as they are, and no labels
		p.click("#ask")
		p.wait(`document.querySelectorAll("#answer tbody tr").length === 4 && document.querySelector("#answer tbody td").textContent === "0" && document.querySelector("#answer th").textContent === "0"`)
		if got := p.ask("entropy"); !strings.Contains(got, "1250") { // about the model, so the row is not sent
			t.Errorf("entropy: %s", got)
		}
		p.choose("query", "moments")
		p.eval(`document.getElementById("input-weights").value = "1,2,x,4"`, nil)
		p.click("#ask")
		p.wait(`document.querySelector("#answer .problem")`)
		p.eval(`document.getElementById("input-weights").value = "1,2"`, nil)
		p.click("#ask")
		p.wait(`document.querySelector("#answer .problem")?.textContent.includes("wants 4")`)
		p.eval(`document.getElementById("input-weights").value = "1,, 3,4"`, nil) // nothing is said of one
		p.eval(`document.getElementById("input-likelihood").value = "0.5,2" + ",".repeat(18)`, nil)
		p.click("#ask")
		p.wait(`document.querySelector("#answer h3")?.textContent === "Mean"`)
		if told := p.complaints(1); len(told) != 1 || !strings.Contains(told[0], "400") { // the console notes what was refused
			t.Errorf("the console has %q", told)
		}
		p.click("#draw")
		p.wait(`document.getElementById("cell-2").value !== ""`)
		p.click("#clear")
		p.wait(`document.getElementById("cell-2").value === "" && document.getElementById("row").value === ""`)
	})

	t.Run("shapes", func(t *testing.T) {
		p := b.open(t, url, 1180, 900)
		p.wait(loaded)
		p.choose("model", "table")
		p.wait(`document.getElementById("cell-3") && !document.getElementById("ask").disabled`)
		p.choose("query", "sample")
		for _, n := range []int{4, 1} { // as many as columns, and one
			p.eval(fmt.Sprintf(`document.getElementById("parameter-n_samples").value = "%d"`, n), nil)
			p.click("#ask")
			p.wait(fmt.Sprintf(`document.querySelectorAll("#answer tbody tr").length === %d && document.querySelector("#answer th").textContent === "level"`, n))
		}
		p.choose("model", "one")
		p.wait(`document.querySelectorAll("#fields select").length === 1 && !document.getElementById("ask").disabled`)
		for _, query := range []string{"mpe", "sample"} {
			p.choose("cell-0", "blue")
			p.choose("query", query)
			p.eval(`(document.getElementById("parameter-n_samples") ?? {}).value = "1"`, nil)
			p.eval(`document.getElementById("answer").replaceChildren()`, nil)
			p.click("#ask")
			p.wait(answered)
			var cell string
			p.eval(`document.querySelector("#answer tbody td")?.textContent ?? document.getElementById("answer").innerText`, &cell)
			if cell != "blue" {
				t.Errorf("%s of a single column: %q", query, cell)
			}
		}
	})

	t.Run("hard labels", func(t *testing.T) {
		p := b.open(t, url, 1180, 900)
		p.wait(loaded)
		p.choose("model", "hard")
		p.wait(`document.querySelectorAll("#fields select").length === 3 && !document.getElementById("ask").disabled`)
		for code, label := range []string{"a", " a", "c,d", `say "e"`, "e"} {
			p.choose("cell-0", label)
			// The row is read back as it was written.
			p.eval(`document.getElementById("row").dispatchEvent(new Event("change"))`, nil)
			var now string
			want := strings.Replace(fmt.Sprintf("%.2f", 0.02-float64(code)), "-", "−", 1) // 0.01 for what is missing
			p.eval(`document.getElementById("cell-0").value`, &now)
			if got := p.ask("log_prob"); now != label || !strings.Contains(got, "\n"+want) {
				t.Errorf("%q is %q in the form, and its log_prob %s", label, now, got)
			}
		}
		p.choose("query", "conditional")
		p.eval(`document.getElementById("input-query_mask").value = '"a,b", 3'`, nil)
		p.click("#ask")
		p.wait(`document.querySelector("#answer .big")?.textContent === "2"`)
		// Numbers of the server are codes here, as the labels of these columns are not
		// numbers to it: a 0x, and two of one number.
		p.click("#clear")
		p.choose("cell-1", "0x10")
		p.choose("cell-2", "2.0")
		if got := p.ask("mpe"); !strings.Contains(got, "0x10\t2.0") {
			t.Errorf("mpe: %s", got)
		}
	})

	t.Run("text", func(t *testing.T) {
		p := b.open(t, url, 1180, 900)
		p.wait(loaded)
		p.choose("model", "wide")
		p.wait(`document.getElementById("text-details").open && !document.getElementById("ask").disabled`)
		p.eval(`document.getElementById("row").focus()`, nil)
		p.write("1,0,1")
		p.click("#ask")
		p.wait(`document.querySelector("#answer .problem")?.textContent.includes("3 cells")`)
		p.eval(`document.getElementById("row").select()`, nil)
		p.write("1" + strings.Repeat(",", 499))
		p.eval(`document.getElementById("row").blur()`, nil)
		if got := p.ask("log_prob"); !strings.Contains(got, "3.99") {
			t.Errorf("log_prob: %s", got)
		}
	})

	t.Run("live", func(t *testing.T) {
		p := b.open(t, url, 1180, 900)
		p.wait(loaded)
		p.ask("log_prob")
		p.wait(`parseFloat(document.querySelector("#models dd").textContent) > 0 && document.querySelectorAll("#models dd")[1].textContent.includes(" · ")`)
		var figures map[string]float64
		p.eval(`(async () => {
			const { quantile, parse } = await import("/page/live.js");
			const [none, some] = [new Map(), new Map([[1, 10], [2, 30], [Infinity, 40]])];
			return { p50: quantile(none, some, 0.5), p99: quantile(none, some, 0.99), first: quantile(none, some, 0.1),
				idle: Number.isNaN(quantile(some, some, 0.5)) ? 1 : 0, nothing: Number.isNaN(quantile(none, none, 0.5)) ? 1 : 0,
				value: parse('# x\na{b="1\\"2",le="+Inf"} 3\n')[0].value };
		})()`, &figures)
		for name, want := range map[string]float64{"p50": 1.5, "p99": 2, "first": 0.4, "idle": 1, "nothing": 1, "value": 3} {
			if figures[name] != want {
				t.Errorf("%s is %v, want %v", name, figures[name], want)
			}
		}
	})

	t.Run("restart", func(t *testing.T) {
		p := b.open(t, url, 1180, 900)
		p.wait(loaded)
		var rates []string
		p.eval(`(async () => {
			const { Live } = await import("/page/live.js");
			const node = document.createElement("div"), live = new Live(node);
			return [100, 300, 50, 80].map((rows, i) => {
				live.update([{ name: "m", state: "READY" }], 'pce_inference_rows_total{model="m",query="q"} ' + rows + "\n", 1000 * i);
				return node.querySelector("dd").textContent;
			});
		})()`, &rates)
		if want := []string{"–", "200", "–", "30"}; !slices.Equal(rates, want) {
			t.Errorf("rows per second are %q, want %q: the server began anew before the third look", rates, want)
		}
	})

	t.Run("keyboard", func(t *testing.T) {
		p := b.open(t, url, 1180, 900)
		p.wait(loaded)
		var order []string
		for range 40 {
			p.press("Tab", 0)
			var at struct {
				ID      string
				Visible bool
			}
			p.eval(`(() => {
				const e = document.activeElement, s = getComputedStyle(e);
				return { id: e.id || e.className || e.tagName, visible: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 };
			})()`, &at)
			if !at.Visible {
				t.Errorf("the focus on %s cannot be seen", at.ID)
			}
			order = append(order, at.ID)
			if at.ID == "ask" {
				break
			}
		}
		if got, want := strings.Join(order, " "), "skip model keep draw clear SUMMARY query ask"; got != want {
			t.Errorf("the focus goes along %q, want %q", got, want)
		}
		for range 4 {
			p.press("Tab", 8) // back, to the button that draws a row
		}
		p.press(" ", 0)
		p.wait(`document.getElementById("row").value !== ""`)
		for range 3 {
			p.press("Tab", 0)
		}
		p.press("ArrowDown", 0)
		p.wait(`document.getElementById("query").value === "sample"`)
		p.press("Tab", 0)
		p.eval(`document.activeElement.select()`, nil)
		p.write("3")
		p.press("Enter", 0)
		p.wait(`document.querySelectorAll("#answer canvas").length === 3`)
	})

	t.Run("labels", func(t *testing.T) {
		p := b.open(t, url, 1180, 900)
		p.wait(loaded)
		for _, model := range []string{"digits", "table"} {
			p.choose("model", model)
			p.wait(`!document.getElementById("ask").disabled`)
			p.ask("sample")
			var faults []string
			p.eval(`(() => {
				const faults = [];
				for (const e of document.querySelectorAll("input, select, textarea")) if (!e.labels.length || !e.labels[0].textContent.trim()) faults.push(e.id + " has no label");
				for (const e of document.querySelectorAll("canvas, [role=region], [role=img]")) if (!e.getAttribute("aria-label")) faults.push(e.outerHTML.slice(0, 80) + " has no name");
				for (const e of document.querySelectorAll("img:not([alt])")) faults.push("a picture without alt");
				const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
				if (new Set(ids).size !== ids.length) faults.push("ids are not unique");
				if (!document.querySelector("[aria-live]") || !document.documentElement.lang || !document.title) faults.push("the page lacks a live region, a language or a title");
				return faults;
			})()`, &faults)
			if len(faults) > 0 {
				t.Errorf("%s: %q", model, faults)
			}
		}
	})

	// Nothing is cut off or wider than the window, and texts can be read.
	for _, look := range []struct {
		name          string
		width, height int
		dark          bool
	}{{"phone", 360, 740, false}, {"phone-dark", 390, 844, true}, {"small", 320, 568, false}, {"tablet", 820, 1180, false}, {"dark", 1180, 900, true}} {
		t.Run(look.name, func(t *testing.T) {
			scheme := map[bool]string{false: "light", true: "dark"}[look.dark]
			p := b.open(t, url, look.width, look.height, "prefers-color-scheme="+scheme)
			p.wait(loaded)
			for _, model := range []string{"table", "digits"} {
				p.choose("model", model)
				p.wait(`!document.getElementById("ask").disabled`)
				p.click("#draw")
				p.wait(`document.getElementById("row").value !== ""`)
				p.ask("sample")
				var wide []string
				p.eval(`(() => {
					for (const dd of document.querySelectorAll("#models dd")) dd.textContent = "12,345 ms · 67,890 ms"; // of a server that is busy
					const most = document.documentElement.clientWidth, wide = [];
					if (document.documentElement.scrollWidth > most) wide.push("the page: " + document.documentElement.scrollWidth);
					for (const e of document.querySelectorAll("body *")) {
						if (e.closest(".scroll, svg, .skip, dialog") && !e.classList.contains("scroll")) continue;
						const r = e.getBoundingClientRect();
						if (r.width && (r.right > most + 0.5 || r.left < -0.5)) wide.push(e.tagName + "#" + e.id + " " + r.left + ".." + r.right);
					}
					return wide;
				})()`, &wide)
				if len(wide) > 0 {
					t.Errorf("%s in %d pixels: %q", model, look.width, wide)
				}
			}
			var faint []string
			p.eval(contrast, &faint)
			if len(faint) > 0 {
				t.Errorf("hard to read: %q", faint)
			}
			var lightness float64
			p.eval(`parseInt(getComputedStyle(document.body).backgroundColor.match(/\d+/)[0])`, &lightness)
			if (lightness < 128) != look.dark {
				t.Errorf("the page's background is %v, dark is %t", lightness, look.dark)
			}
			p.picture(look.name)
		})
	}
}

// contrast lists texts whose contrast with what is behind them is below 4.5, as the
// Web Content Accessibility Guidelines, level AA, define it.
const contrast = `(() => {
	const colour = (text) => text.match(/[\d.]+/g).map(Number);
	const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
		.reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = colour(getComputedStyle(e).backgroundColor);
			if (c.length === 3 || c[3] === 1) return c;
		}
		return [255, 255, 255];
	};
	const faint = [];
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility() || e.closest("button:disabled, noscript")) continue;
		const [a, b] = [luminance(colour(getComputedStyle(e).color)), luminance(behind(e))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (!(ratio >= 4.5)) faint.push(e.tagName + " " + e.textContent.slice(0, 30) + ": " + ratio.toFixed(2));
	}
	return faint;
})()`

// TestBrowserToken wants the page to ask for the token before its first request, to ask
// again when it is refused, and to keep it nowhere.
func TestBrowserToken(t *testing.T) {
	b := startBrowser(t)
	p := b.open(t, pageServer(t, Options{Token: "s3cret"}), 900, 700)
	p.wait(`document.getElementById("token-dialog").open && document.activeElement.id === "token"`)
	p.wait(`["draw", "clear", "ask"].every((id) => document.getElementById(id).disabled)`) // there is nothing to ask yet
	p.picture("token")
	p.press("Escape", 0)
	p.wait(`document.getElementById("token-dialog").open`)
	if told := p.complaints(0); len(told) > 0 {
		t.Errorf("before a token: %q", told)
	}
	p.write("wrong")
	p.press("Enter", 0)
	p.wait(`document.getElementById("token-dialog").open && !document.getElementById("token-problem").hidden`)
	if told := p.complaints(1); !strings.Contains(told[0], "401") {
		t.Errorf("after a wrong token: %q", told)
	}
	p.write("s3cret")
	p.press("Enter", 0)
	p.wait(loaded)
	if got := p.ask("log_prob"); !strings.Contains(got, "7.84") || !strings.Contains(got, "curl") {
		t.Errorf("log_prob: %s", got)
	}
	var kept string
	p.eval(`JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML, document.getElementById("token").value])`, &kept)
	if strings.Contains(kept, "s3cret") {
		t.Errorf("the page keeps the token: %s", kept)
	}
}

// relabelled opens tables of one column, whose labels the file lists.
type relabelled struct{ gallery }

func (relabelled) Open(_ context.Context, path string) (Model, error) {
	text, err := os.ReadFile(path)
	labels := strings.Split(string(text), ",")
	return &painter{&dataset.Schema{Columns: []dataset.Column{{Name: "colour", Categories: len(labels), Labels: labels}}}}, err
}

// TestBrowserReload replaces a model while its page is open: codes of an answer are read by the labels of the version that gave it, and the
// form follows.
func TestBrowserReload(t *testing.T) {
	b := startBrowser(t)
	path := filepath.Join(t.TempDir(), "model")
	write := func(labels string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(labels), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("red,blue")
	s, err := New(Options{Loader: relabelled{}, Models: []Source{{Name: "m", Path: path}}, Hosts: LoopbackHosts, MaxQueueDelay: -1, ReloadEvery: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	p := b.open(t, h.URL+"/", 900, 700)
	const form = `!document.getElementById("ask").disabled && document.querySelectorAll("#cell-0 option").length === %d`
	p.wait(fmt.Sprintf(form, 3))
	for i, labels := range []string{"red,blue", "blue,green,red", "green,red"} {
		if i > 0 {
			write(labels)
			for version := ""; version != strconv.Itoa(i+1); <-time.After(time.Millisecond) {
				info, err := s.describe(t.Context(), "m", "")
				if err != nil {
					t.Fatal(err)
				}
				version = info.Versions[0]
			}
		}
		if got, want := p.ask("mpe"), strings.Split(labels, ",")[1]; !strings.Contains(got, "\n"+want) {
			t.Errorf("the second label of %s is shown as %s", labels, got)
		}
		p.wait(fmt.Sprintf(form, 1+len(strings.Split(labels, ","))))
	}
}

// TestBrowserPolicy wants the browser to refuse what is not the page's own.
func TestBrowserPolicy(t *testing.T) {
	b := startBrowser(t)
	url, other := pageServer(t, Options{}), pageServer(t, Options{})
	p := b.open(t, url, 900, 700)
	p.wait(loaded)
	var got []string
	p.eval(fmt.Sprintf(`(async () => {
		const done = [];
		await fetch(%q, { mode: "no-cors" }).then(() => done.push("fetch"), () => {});
		const script = document.createElement("script");
		script.textContent = "window.inline = true";
		document.body.append(script);
		if (window.inline) done.push("inline script");
		document.body.insertAdjacentHTML("beforeend", '<p id="styled" style="position:fixed">x</p>');
		if (getComputedStyle(document.getElementById("styled")).position === "fixed") done.push("inline style");
		return done;
	})()`, other), &got)
	if len(got) > 0 {
		t.Errorf("the page may %q", got)
	}
	p.complaints(3) // the browser says what it refused, in three lines or more
	p.faulty = true
}
