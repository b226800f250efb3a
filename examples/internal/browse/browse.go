// Package browse opens pages in headless Chromium, for tests of what a person sees.
//
// A [Browser] is one process; each [Tab] has its own cookies, as the browser of one person. Actions wait for their
// effect, never for a time, and fail the test if the effect does not come. Without Chromium a test is skipped; in CI
// it fails.
package browse

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience is the time limit of every browser action. It only ends a hanging test; it is long enough to check a
// page of thousands of elements on a busy machine.
const patience = 3 * time.Minute

// Browser is one running Chromium. It is safe for concurrent use.
type Browser struct {
	t    testing.TB
	ctx  context.Context // the context of chromedp, the browser library
	dir  string          // folder for pictures of pages; empty for none
	axes string
}

// Start starts Chromium and stops it when the test ends. Pictures of pages are saved in the folder that the environment
// variable HEALTHLABTEST_SCREENSHOTS names; if it is not set, no pictures are taken.
func Start(t testing.TB) *Browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		skipWithout(t, "there is no Chromium")
	}
	dir := os.Getenv("HEALTHLABTEST_SCREENSHOTS")
	if dir != "" {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.IgnoreCertErrors,
		chromedp.Flag("disable-dev-shm-usage", true),
	)
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, end := chromedp.NewContext(alloc)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx); end(); stop() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return &Browser{t: t, ctx: ctx, dir: dir}
}

// skipWithout skips a test because this machine lacks a program; in CI it fails the test. why is the reason.
func skipWithout(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s: CI must be able to run this", why)
	}
	t.Skip(why + ": nobody looks at the pages")
}

// Person is a simulated person with a browser. The zero value has a phone, light colours, English, and scripts
// allowed.
type Person struct {
	Desktop  bool
	Dark     bool
	NoScript bool
	// Language is the preferred language of the browser, such as de. Empty means en.
	Language string
}

// Tab is one person's browser window, with cookies of its own. It is not safe for concurrent use.
type Tab struct {
	t      testing.TB
	b      *Browser
	ctx    context.Context // the context of chromedp, the browser library
	person Person

	checks int // number of calls of CheckWidths

	mu       sync.Mutex
	asked    []string
	refusals []string
}

// Widths and heights of screens, in CSS pixels.
const (
	phone, phoneHigh     = 390, 844
	desktop, desktopHigh = 1280, 900
)

// Open opens a tab for a person. The tab is closed when the test ends.
func (b *Browser) Open(t testing.TB, p Person) *Tab {
	t.Helper()
	tab := &Tab{t: t, b: b, person: p}
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(tab.record))
	t.Cleanup(end)
	tab.ctx = ctx
	language := p.Language
	if language == "" {
		language = "en"
	}
	if err := chromedp.Do(ctx); err != nil { // the tab ends with the context of its first action
		t.Fatalf("open a tab: %v", err)
	}
	tab.do("open a tab", call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{}),
		call(network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Language": language}}),
		call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: p.NoScript}),
		tab.colours(p.Dark), tab.size(p.Desktop))
	return tab
}

// step is a browser action that returns no result.
type step = chromedp.Action[chromedp.Void]

func call[P, R any](cmd cdp.Command[P, R], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, cmd, params)
		return err
	})
}

// record receives events of the browser. It records the requested addresses and the violations of a page's content
// security policy.
func (tab *Tab) record(event any) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		tab.asked = append(tab.asked, e.Request.URL)
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") {
			tab.refusals = append(tab.refusals, e.Entry.Text)
		}
	}
}

// Asked returns the addresses that the tab has requested so far, except data: URLs.
func (tab *Tab) Asked() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(tab.asked), func(s string) bool { return strings.HasPrefix(s, "data:") })
}

// Refusals returns the browser's messages about violations of a page's content security policy.
func (tab *Tab) Refusals() []string {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return slices.Clone(tab.refusals)
}

func (tab *Tab) colours(dark bool) step {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

func (tab *Tab) size(wide bool) step {
	p := emulation.SetDeviceMetricsOverrideParams{Width: phone, Height: phoneHigh, DeviceScaleFactor: 2, Mobile: true}
	if wide {
		p = emulation.SetDeviceMetricsOverrideParams{Width: desktop, Height: desktopHigh, DeviceScaleFactor: 1}
	}
	return call(emulation.SetDeviceMetricsOverride, p)
}

// do runs browser actions, in order. If one fails, it ends the test with the error and with what, a description of the
// actions.
func (tab *Tab) do(what string, steps ...step) {
	tab.t.Helper()
	ctx, stop := context.WithTimeout(tab.ctx, patience)
	defer stop()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tab.fail(what, err)
	}
}

// fail ends the test with an error and the visible text of the page. what describes the action that failed.
func (tab *Tab) fail(what string, err error) {
	tab.t.Helper()
	ctx, stop := context.WithTimeout(tab.ctx, 5*time.Second)
	defer stop()
	at, _ := chromedp.Run(ctx, chromedp.Location())
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body ? document.body.innerText : ''"))
	tab.t.Fatalf("%s: %v\nat %s\n%s", what, err, at, text)
}

// Go opens an address and waits until its page is loaded.
func (tab *Tab) Go(address string) {
	tab.t.Helper()
	tab.navigate("open "+address, chromedp.Navigate(address))
}

// navigate runs an action that leads to another page, and waits until that page is loaded. what describes the action
// for an error.
func (tab *Tab) navigate(what string, action step) {
	tab.t.Helper()
	ctx, stop := context.WithTimeout(tab.ctx, patience)
	defer stop()
	if _, err := chromedp.RunResponse(ctx, action); err != nil {
		tab.fail(what, err)
	}
}

func target(words string) string {
	return fmt.Sprintf(`//*[self::a or self::button][contains(normalize-space(.), %q)]`, words)
}

// Press clicks the link or button with this text, and waits for the page to which it leads.
func (tab *Tab) Press(words string) {
	tab.t.Helper()
	tab.navigate("press "+words, chromedp.Click(target(words), chromedp.NodeVisible))
}

// Enter types a value into the field with this label.
func (tab *Tab) Enter(label, value string) {
	tab.t.Helper()
	field := fmt.Sprintf(`//*[@id=//label[contains(normalize-space(.), %q)]/@for]`, label)
	tab.do("enter "+label, chromedp.Clear(field), chromedp.SendKeys(field, value))
}

// Set replaces the value of the field with this label, without the events of typing.
func (tab *Tab) Set(label, value string) {
	tab.t.Helper()
	tab.do("set "+label, chromedp.SetValue(fmt.Sprintf(`//*[@id=//label[contains(normalize-space(.), %q)]/@for]`, label), value))
}

// Choose selects an option, by its value, in the select element with this label.
func (tab *Tab) Choose(label, value string) {
	tab.t.Helper()
	tab.do("choose "+label, choice(label, value))
}

// ChooseTo selects an option in a select element that loads another page at once, and waits for that page.
func (tab *Tab) ChooseTo(label, value string) {
	tab.t.Helper()
	tab.navigate("choose "+label, choice(label, value))
}

func choice(label, value string) step {
	return chromedp.SetValue(fmt.Sprintf(`//select[@id=//label[contains(normalize-space(.), %q)]/@for]`, label), value)
}

// Untick clears the checkbox with this label.
func (tab *Tab) Untick(label string) {
	tab.t.Helper()
	tab.do("untick "+label, chromedp.Click(fmt.Sprintf(`//label[contains(normalize-space(.), %q)]//input`, label)))
}

// Keys presses keys while an element has the focus. The keys must not lead to another page; use [Tab.KeysTo] for
// that.
func (tab *Tab) Keys(keys string) {
	tab.t.Helper()
	tab.do("press keys", chromedp.KeyEvent(keys))
}

// KeysTo presses keys that lead to another page, and waits until that page is loaded.
func (tab *Tab) KeysTo(keys string) {
	tab.t.Helper()
	tab.navigate("press keys", chromedp.KeyEvent(keys))
}

// Text returns the visible text of the page.
func (tab *Tab) Text() string {
	tab.t.Helper()
	text := read(tab, "read the page", chromedp.Evaluate[string]("document.body.innerText"))
	return strings.Join(strings.Fields(text), " ")
}

// See fails the test unless the page shows all of these texts now.
func (tab *Tab) See(words ...string) {
	tab.t.Helper()
	text := tab.Text()
	for _, w := range words {
		if !strings.Contains(text, w) {
			tab.t.Fatalf("nobody sees %q at %s:\n%s", w, tab.At(), text)
		}
	}
}

// Wait waits until the page shows this text.
func (tab *Tab) Wait(words string) {
	tab.t.Helper()
	tab.WaitFor(fmt.Sprintf("document.body.innerText.includes(%q)", words))
}

// Miss fails the test if the page shows one of these texts.
func (tab *Tab) Miss(words ...string) {
	tab.t.Helper()
	text := tab.Text()
	for _, w := range words {
		if strings.Contains(text, w) {
			tab.t.Fatalf("somebody sees %q at %s:\n%s", w, tab.At(), text)
		}
	}
}

// At returns the address (URL) of the page.
func (tab *Tab) At() string {
	tab.t.Helper()
	return read(tab, "read the address", chromedp.Location())
}

// Eval evaluates a JavaScript expression on the page, and returns its value as a T.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	return read(tab, "evaluate", chromedp.Evaluate[T](expression))
}

// read runs a browser action and returns its result. If the action fails, it ends the test; what describes the action.
func read[T any](tab *Tab, what string, action chromedp.Action[T]) T {
	tab.t.Helper()
	ctx, stop := context.WithTimeout(tab.ctx, patience)
	defer stop()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		tab.fail(what, err)
	}
	return v
}

// Back goes back to the previous page of the tab, and waits until that page is loaded.
func (tab *Tab) Back() {
	tab.t.Helper()
	tab.navigate("go back", chromedp.NavigateBack())
}

// Shot saves four pictures of the whole page, each of phone and desktop width in light and dark colours. The file names
// begin with name. It does nothing if [Start] found no folder for pictures.
func (tab *Tab) Shot(name string) {
	tab.t.Helper()
	if tab.b.dir == "" {
		return
	}
	for _, wide := range []bool{false, true} {
		for _, dark := range []bool{false, true} {
			tab.do("change the screen", tab.size(wide), tab.colours(dark))
			high := read(tab, "measure the page", chromedp.Evaluate[float64]("document.documentElement.scrollHeight"))
			width := float64(phone)
			if wide {
				width = desktop
			}
			png := read(tab, "take a picture", func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
				beyond := true
				r, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{
					CaptureBeyondViewport: &beyond, Clip: &page.Viewport{Width: width, Height: high, Scale: 1},
				})
				return r.Data, err
			})
			file := fmt.Sprintf("%s-%s-%s.png", name, map[bool]string{false: "phone", true: "desktop"}[wide],
				map[bool]string{false: "light", true: "dark"}[dark])
			if err := os.WriteFile(filepath.Join(tab.b.dir, file), png, 0o600); err != nil {
				tab.t.Fatal(err)
			}
		}
	}
	tab.do("change the screen back", tab.size(tab.person.Desktop), tab.colours(tab.person.Dark))
}

// WaitFor waits until a JavaScript expression is true on the page. The tab may load another page meanwhile.
func (tab *Tab) WaitFor(expression string) {
	tab.t.Helper()
	ctx, stop := context.WithTimeout(tab.ctx, patience)
	defer stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		// Ignore errors: while another page is being loaded, the evaluation fails.
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")")); err == nil && ok {
			return
		}
		select {
		case <-ctx.Done():
			tab.fail("wait for "+expression, ctx.Err())
		case <-tick.C:
		}
	}
}

// Touch clicks the link or button with this text, and does not wait for another page: a script handles the click.
func (tab *Tab) Touch(words string) {
	tab.t.Helper()
	tab.do("press "+words, chromedp.Click(target(words), chromedp.NodeVisible))
}
