package browse

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/healthlab-dev/healthlab/internal/prove"
)

// axeVersion is the version of axe-core, the accessibility checker that npm downloads (MPL-2.0).
const axeVersion = "axe-core@4.14.1"

// LoadAxe loads axe-core for [Tab.Check]. npm downloads it once for each run of the test program. Without npm, or if
// the download fails, LoadAxe skips the test; in CI it fails the test.
func (b *Browser) LoadAxe() {
	b.t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		skipWithout(b.t, "there is no npm")
	}
	source, err := fetchAxe()
	if err != nil {
		b.t.Log(err)
		skipWithout(b.t, "npm could not fetch axe-core")
	}
	b.axes = source
}

// fetchAxe returns the JavaScript source of axe-core, which npm downloads.
var fetchAxe = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "axe")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	fetch := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts",
		"--fetch-retries=1", "--fetch-timeout=20000", axeVersion)
	fetch.Dir = dir
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(source), err
})

// findings are the results of axe-core for a page: violations, and the number of passed rules.
type findings struct {
	Violations []violation `json:"violations"`
	Passes     int         `json:"passes"`
}

// violation is one accessibility rule that elements of the page violate.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// Check fails the test if axe-core finds an accessibility violation on the page at the width of a phone, or if the page
// is wider than the phone. In CI and under make prove, each call checks light and dark colours; otherwise the calls on
// one Tab alternate between them.
func (tab *Tab) Check() {
	tab.t.Helper()
	tab.CheckWidths(phone)
}

// CheckWidths is [Tab.Check] at screens of these widths, in CSS pixels. In CI and under make prove, each call runs
// axe-core for all widths, in light and dark colours; otherwise each call on one Tab runs it for the next combination.
// Every call checks that the page is not wider than the screen.
func (tab *Tab) CheckWidths(widths ...int64) {
	tab.t.Helper()
	if tab.b.axes == "" {
		tab.t.Fatal("LoadAxe first")
	}
	tab.do("load axe-core", chromedp.Evaluate[chromedp.Void](tab.b.axes+"; void 0"))
	for i, width := range widths {
		tab.do("change the screen", screen(width))
		if Eval[bool](tab, "document.documentElement.scrollWidth > innerWidth") {
			tab.t.Errorf("%s is wider than %d pixels", tab.At(), width)
		}
		for k, dark := range []bool{false, true} {
			if !prove.All() && 2*i+k != tab.checks%(2*len(widths)) {
				continue
			}
			tab.do("change the colours", tab.colours(dark))
			// The option resultTypes makes axe-core omit the elements that passed.
			found := read(tab, "check", chromedp.Evaluate[findings](
				`axe.run({resultTypes: ["violations"]}).then(r => ({violations: r.violations, passes: r.passes.length}))`, chromedp.EvalAwaitPromise))
			if found.Passes < 10 {
				tab.t.Errorf("axe-core looked at next to nothing at %s", tab.At())
			}
			for _, v := range found.Violations {
				var where []string
				for _, n := range v.Nodes {
					where = append(where, n.HTML+"\n"+n.Summary)
				}
				tab.t.Errorf("%s (%d pixels, dark: %v): %s: %s\n%s", tab.At(), width, dark, v.ID, v.Help, strings.Join(where, "\n"))
			}
		}
	}
	tab.checks++
	tab.do("change the screen back", tab.size(tab.person.Desktop), tab.colours(tab.person.Dark))
}

// screen returns the action that sets the width of the screen: a phone below 600 pixels, otherwise a desktop.
func screen(width int64) step {
	p := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: desktopHigh, DeviceScaleFactor: 1}
	if width < 600 {
		p.Height, p.DeviceScaleFactor, p.Mobile = phoneHigh, 2, true
	}
	return call(emulation.SetDeviceMetricsOverride, p)
}

// Picture saves a picture of the page as name.png, in light colours at a width in CSS pixels. It does nothing if
// [Start] found no folder for pictures.
func (tab *Tab) Picture(name string, width int64) {
	tab.t.Helper()
	if tab.b.dir == "" {
		return
	}
	tab.do("change the screen", screen(width), tab.colours(false))
	high := read(tab, "measure the page", chromedp.Evaluate[float64]("document.documentElement.scrollHeight"))
	png := read(tab, "take a picture", func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		beyond := true
		r, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{
			CaptureBeyondViewport: &beyond, Clip: &page.Viewport{Width: float64(width), Height: min(high, 1600), Scale: 0.75},
		})
		return r.Data, err
	})
	file := filepath.Join(tab.b.dir, name+".png")
	if err := os.WriteFile(file, png, 0o600); err != nil {
		tab.t.Fatal(err)
	}
	tab.do("change the screen back", tab.size(tab.person.Desktop), tab.colours(tab.person.Dark))
}

// String describes the simulated person's screen, colours, scripts and language.
func (p Person) String() string {
	return fmt.Sprintf("desktop=%v dark=%v script=%v %s", p.Desktop, p.Dark, !p.NoScript, p.Language)
}
