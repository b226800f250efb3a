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

// LinkPages are the pages on which a person links an account: choose a source, agree, sign in, done. They are HTML
// that works without a script, in English and German, on phones and desktops, light and dark, and they load nothing
// from other origins.
//
// Each page's address contains the link token, as link_web_url does. The token alone gives access, without a cookie,
// so that two people can use two tabs of one browser and the pages can be embedded. A host should keep queries out
// of its access logs, because they contain the token. The one cookie, __Host-link, ties a sign-in at a provider's
// own page to the browser that started it. It lives for an hour, contains nothing about a person, and is sent only
// to the callback of this service. If linking.Options.BaseURL is plain http, the cookie is named link, because
// browsers reserve the prefix for https.
//
// The zero value is ready to use. linking.Brand sets what a team's pages look like. Its colour is changed where text
// would be hard to read. Its logo is shown only if it is a data: URL or on this service's origin, so that no third
// party learns of the visit; Logos can provide it.
type LinkPages struct {
	// Name is shown if a team has no name. Default Health Link.
	Name string
	// Logos are image files named after the slug of a provider, such as acme_ring.svg, or "brand" for the logo of the
	// pages: brand.png. Allowed are .svg, .png, .webp and .jpg. They are read once. A source without a logo shows its
	// initials.
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
	// Days is the length of the longest history in days, and FetchedDays the number of these days that are stored.
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
