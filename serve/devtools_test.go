package serve

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a headless Chromium, spoken to by the DevTools protocol: JSON messages that
// end in a zero byte, over a pair of pipes.
type browser struct {
	t  *testing.T
	to *os.File

	mu      sync.Mutex
	last    int
	answers map[int]chan devtoolsMessage
	told    map[string][]string // by session: what the console and the page's scripts complained of
	gone    chan struct{}
}

// devtoolsMessage is a call, its answer or an event.
type devtoolsMessage struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// chromium returns the command of an installed Chromium, or skips the test.
func chromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser; without -short")
	}
	names := []string{"chromium", "chromium-browser", "google-chrome", "headless_shell"}
	if named := os.Getenv("PCE_CHROMIUM"); named != "" {
		names = []string{named}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("SKIPPED: none of %q is installed; install one (Debian's package is chromium), or name it in PCE_CHROMIUM", names)
	return ""
}

// startBrowser starts a Chromium, which ends with the test.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	path := chromium(t)
	// Chromium reads what it is told from descriptor 3 and writes to 4.
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "pce-chromium-") // removed once the process is gone
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir="+profile, "about:blank")
	cmd.ExtraFiles = []*os.File{in, out}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	out.Close()
	b := &browser{t: t, to: to, answers: map[int]chan devtoolsMessage{}, told: map[string][]string{}, gone: make(chan struct{})}
	go b.listen(from)
	t.Cleanup(func() {
		// Killed, it would leave processes behind that still write to the profile. The
		// answer is not waited for: the test's context has ended.
		b.call("", "Browser.close", struct{}{}, nil)
		cmd.Wait()
		to.Close()
		<-b.gone
		from.Close()
		os.RemoveAll(profile)
	})
	return b
}

// listen hands answers to those who wait and keeps complaints, until the pipe ends.
func (b *browser) listen(from *os.File) {
	defer close(b.gone)
	r := bufio.NewReader(from)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m devtoolsMessage
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			return
		}
		b.mu.Lock()
		if answer := b.answers[m.ID]; m.ID != 0 && answer != nil {
			delete(b.answers, m.ID)
			answer <- m
		} else if line := complaint(&m); line != "" {
			b.told[m.SessionID] = append(b.told[m.SessionID], line)
		}
		b.mu.Unlock()
	}
}

// complaint is what an event says of a fault in the page, or "".
func complaint(m *devtoolsMessage) string {
	var p struct {
		Type  string
		Args  []struct{ Value any }
		Entry struct{ Level, Text, URL string }
		Ex    struct {
			Text      string
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return ""
	}
	switch m.Method {
	case "Runtime.consoleAPICalled":
		if slices.Contains([]string{"error", "warning", "assert"}, p.Type) {
			return fmt.Sprint("console: ", p.Args)
		}
	case "Runtime.exceptionThrown":
		return p.Ex.Text + " " + p.Ex.Exception.Description
	case "Log.entryAdded":
		if p.Entry.Level == "error" || p.Entry.Level == "warning" {
			return p.Entry.Text + " " + p.Entry.URL
		}
	case "Inspector.targetCrashed":
		return "the page crashed"
	}
	return ""
}

// call makes a call and stores its result, unless that is nil.
func (b *browser) call(session, method string, params, result any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer := make(chan devtoolsMessage, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.answers[id] = answer
	b.mu.Unlock()
	if text, err = json.Marshal(devtoolsMessage{ID: id, SessionID: session, Method: method, Params: text}); err != nil {
		return err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return err
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-b.gone:
		return fmt.Errorf("%s: the browser has ended", method)
	case <-b.t.Context().Done():
		return b.t.Context().Err()
	}
}

// tab is a page of the browser.
type tab struct {
	*testing.T
	b       *browser
	session string
	faulty  bool // the test makes the page complain, more than once
}

// open opens a page in a window of a size. At the test's end its console must be empty.
func (b *browser) open(t *testing.T, url string, width, height int, features ...string) *tab {
	t.Helper()
	var target struct{ TargetID string }
	var attached struct{ SessionID string }
	if err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		t.Fatal(err)
	}
	if err := b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		t.Fatal(err)
	}
	p := &tab{T: t, b: b, session: attached.SessionID}
	p.call("Runtime.enable", nil, nil)
	p.call("Log.enable", nil, nil)
	p.call("Page.enable", nil, nil)
	p.size(width, height)
	media := []map[string]string{}
	for _, f := range features {
		name, value, _ := strings.Cut(f, "=")
		media = append(media, map[string]string{"name": name, "value": value})
	}
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": media}, nil)
	p.call("Page.navigate", map[string]any{"url": url}, nil)
	p.wait(`document.readyState === "complete" && location.href !== "about:blank"`)
	t.Cleanup(func() {
		for _, line := range p.complaints(0) {
			if !p.faulty {
				t.Errorf("the page complained: %s", line)
			}
		}
		b.call("", "Target.closeTarget", map[string]any{"targetId": target.TargetID}, nil)
	})
	return p
}

// complaints returns what the page has complained of, and forgets it. It waits for n
// complaints, which come some time after what they are about.
func (p *tab) complaints(n int) []string {
	p.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		p.b.mu.Lock()
		told := p.b.told[p.session]
		if len(told) >= n {
			delete(p.b.told, p.session)
		}
		p.b.mu.Unlock()
		if len(told) >= n {
			return told
		}
		if time.Now().After(deadline) {
			p.Fatalf("the page complained of %q in a minute, want %d complaints", told, n)
		}
		p.eval("0", nil) // the browser has had time to tell more
	}
}

func (p *tab) call(method string, params, result any) {
	p.Helper()
	if params == nil {
		params = struct{}{}
	}
	if err := p.b.call(p.session, method, params, result); err != nil {
		p.Fatal(err)
	}
}

func (p *tab) size(width, height int) {
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
}

// eval evaluates JavaScript in the page and stores its value, unless that is nil.
func (p *tab) eval(script string, value any) {
	p.Helper()
	var got struct {
		Result struct {
			Value json.RawMessage
		}
		Ex *struct {
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	p.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &got)
	if got.Ex != nil {
		p.Fatalf("%s\n%s", script, got.Ex.Exception.Description)
	}
	if value == nil {
		return
	}
	if err := json.Unmarshal(got.Result.Value, value); err != nil {
		p.Fatalf("%s\nis %s: %v", script, got.Result.Value, err)
	}
}

// wait waits until an expression is true.
func (p *tab) wait(expression string) {
	p.Helper()
	p.eval(`new Promise((done, fail) => {
		const end = Date.now() + 60000;
		const look = () => {
			if (`+expression+`) done(true);
			else if (Date.now() > end) fail(new Error("waited a minute; the page shows:\n" + document.body.innerText));
			else setTimeout(look, 5);
		};
		look();
	})`, nil)
}

// click clicks the middle of an element with the mouse.
func (p *tab) click(selector string) {
	p.Helper()
	var at struct{ X, Y float64 }
	p.eval(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e.scrollIntoView({ block: "center" });
		const r = e.getBoundingClientRect();
		return { x: r.x + r.width / 2, y: r.y + r.height / 2 };
	})()`, selector), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "buttons": 1, "clickCount": 1}, nil)
	}
}

// press presses a key.
func (p *tab) press(key string, modifiers int) {
	p.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowDown": 40, "Home": 36, "End": 35}
	event := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key], "modifiers": modifiers}
	switch key {
	case "Enter":
		event["text"] = "\r"
	case " ":
		event["text"], event["code"] = " ", "Space"
	}
	p.call("Input.dispatchKeyEvent", event, nil)
	event["type"] = "keyUp"
	delete(event, "text")
	p.call("Input.dispatchKeyEvent", event, nil)
}

// write types text into the element that has the focus.
func (p *tab) write(text string) {
	p.Helper()
	p.call("Input.insertText", map[string]any{"text": text}, nil)
}

// picture writes a picture of the whole page, if -screenshots names a directory.
func (p *tab) picture(name string) {
	p.Helper()
	if *screenshots == "" {
		return
	}
	var shot struct{ Data string }
	p.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	text, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), text, 0o600)
	}
	if err != nil {
		p.Fatal(err)
	}
}
