package httpapi

import (
	"context"
	"io/fs"
	"net/http"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/linkpages"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/page"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/server"
)

// LinkPages are the pages on which a person links an account: choose a source, agree, sign
// in, done. They are HTML that works without a script, in English and German, on phones and
// desktops, light and dark, and they ask no other origin for anything.
//
// The link token stands in their addresses, as it does in link_web_url, and is all that
// opens them: no cookie does, so that two tabs of two people stay apart and the pages can
// be embedded. The one cookie, __Host-link, only ties a sign-in at a provider's own page to
// the browser that left for it. It lives for an hour, says nothing about a person, and is
// sent to our own callback alone; where linking.Options.BaseURL is plain http it is named
// link, for browsers keep the prefix for https. A host keeps queries out of the logs of its
// servers, for the token stands there.
//
// The zero value is good. What a team's pages look like is linking.Brand: its colour is
// moved as far as it takes to be readable, and its logo is shown where it is a data: URL or
// on our own origin, so that no third party learns of the visit; Logos can hold it.
type LinkPages struct {
	// Name is shown if a team has no name. Default Health Link.
	Name string
	// Logos are files named after a provider's slug, and brand for the page's own:
	// acme_ring.svg, brand.png; also .webp and .jpg. They are read once. A source without
	// one shows its initials.
	Logos fs.FS
	// FrameAncestors lists the origins that may embed the pages, in the form of a Content-Security-Policy:
	// https://app.example. They receive the result by postMessage as {source: "link", event, provider, error_type},
	// where event is success, exit or error. Default: no origin may embed the pages.
	FrameAncestors []string
	// Language is used if neither the person nor the browser chooses one. Default en.
	Language string
	// Texts replaces texts by language and key, and may add languages. The keys are those of
	// internal/page/text/en.json.
	Texts map[string]map[string]string
	// OnDevice also offers on-device stores. The page shows a link code, and continues when the companion app has
	// connected.
	OnDevice bool
	// Manual also offers sources whose data people enter by hand.
	Manual bool
	// Demo offers connections with invented data in a sandbox, for providers that support them.
	Demo bool
	// FirstImport returns the progress of the first import of a new connection to a cloud source. Nil: the last page
	// shows no progress.
	FirstImport func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (FirstImport, error)
}

// FirstImport is the progress of the first import of a connection.
type FirstImport struct {
	// Total is the number of kinds of data; 0 until it is known. Done is the number of finished kinds, and Failed the
	// number of finished kinds without success.
	Total, Done, Failed int
	// Days is the number of days of the longest history, and FetchedDays the number of these that are stored.
	Days, FetchedDays int
}

func (a *api) makePages() {
	if a.Linking == nil || a.Health == nil {
		panic("httpapi: LinkingPages needs the parts Linking and HealthData")
	}
	p := a.LinkPages
	o := linkpages.Options{
		Linking: a.Linking, Health: a.Health, Name: p.Name, Logos: p.Logos, FrameAncestors: p.FrameAncestors, Language: p.Language,
		Texts: p.Texts, OnDevice: p.OnDevice, Manual: p.Manual, Demo: p.Demo, NoteToken: a.byLink,
		LogFailure: func(r *http.Request, team healthlab.TeamID, err error) {
			a.logFailure(r, &call{op: &server.Operation{ID: "link_page"}, team: team}, "link page failed", err)
		},
	}
	if p.FirstImport != nil {
		o.FirstImport = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (page.Import, error) {
			f, err := p.FirstImport(ctx, team, user, provider)
			return page.Import{Known: true, Done: f.Done, Total: f.Total, Failed: f.Failed > 0, Days: f.Days, FetchedDays: f.FetchedDays}, err
		}
	}
	pages, err := linkpages.New(o)
	if err != nil {
		panic("httpapi: " + err.Error())
	}
	a.pages = pages
}

func (a api) linkPageOperations() []server.Operation {
	return a.pages.Operations()
}
