package pull

import (
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// Modes of a provider's backfill.
const (
	modePushIncremental = "push_incremental"
	modeNone            = "none"
)

// planner plans the tasks of connections. It calls no store and no provider.
type planner struct {
	users *healthdata.Service // has the records of providers, and makes the events of histories
	// extended has the pullers that support more than timeseries and summaries, by provider.
	extended map[string]linking.ExtendedPuller
	// together are the sets of resources that one request returns, by provider.
	together map[string][][]string
	every    time.Duration // Options.Every
}

// planInput has a connection, its user, the team's settings and the present time, from which plan makes the tasks.
type planInput struct {
	ref        Ref
	connection *healthdata.Connection
	user       *healthdata.User
	settings   TeamSettings
	at         time.Time
}

// plan makes the tasks of a connection from its present ones, old. Tasks that were planned for the same link keep their
// progress, and are due again if they were stopped. If the person linked again without a removal, and the provider's
// record does not ask for a new history (RelinkRerunsBackfill), histories that have not failed stay too. Tasks of
// resources that are no longer fetched are stopped.
func (l *planner) plan(in planInput, old []Task) (ConnectionPlan, error) {
	c, at := in.connection, in.at
	out := ConnectionPlan{Due: nextMaintenance(in.user)}
	p := l.users.Providers().Get(in.ref.Provider)
	resources := l.pullable(p, c)
	for i, r := range resources {
		history, news, err := l.planResource(in, p, r)
		if err != nil {
			return ConnectionPlan{}, err
		}
		for _, n := range []*Task{&history.Task, &news} {
			n.Turn, n.Step = int64(i), int64(len(resources))
			if n.Kind == News {
				n.Turn, n.Step = 0, 0
			} else if r == deviceSlug {
				continue // a list of devices has no history
			}
			k := slices.IndexFunc(old, func(t Task) bool { return t.Key == n.Key })
			again := k >= 0 && !reruns(p) && !old[k].Linked.Before(c.CreatedOn) // linked again without a removal
			if again && n.Kind == News {
				n.Seen, n.Due = old[k].Seen, at // no other task fetches the time between
			}
			if k >= 0 && old[k].Linked.Equal(c.LinkedAt) || again && n.Kind == History && old[k].Status != Failure {
				kept := old[k]
				kept.Linked, kept.Client = c.LinkedAt, c.Client
				if kept.Due.IsZero() && kept.Lead == "" && (n.Kind == News || kept.Status != Success && kept.Status != Failure) {
					kept.Due = at // it was stopped when the connection failed
				}
				out.Tasks = append(out.Tasks, kept)
				continue
			}
			out.Tasks = append(out.Tasks, *n)
			if n.Kind == History && history.event != nil {
				out.Events = append(out.Events, *history.event)
			}
		}
	}
	if !c.Demo {
		setLeads(l.together[in.ref.Provider], out.Tasks)
	}
	clearLeads(out.Tasks, at)
	for _, t := range old { // of resources that are no longer offered: kept for reports
		if !slices.ContainsFunc(out.Tasks, func(n Task) bool { return n.Key == t.Key }) {
			t.stop()
			t.Lead = ""
			out.Tasks = append(out.Tasks, t)
		}
	}
	return out, nil
}

func reruns(p *healthdata.Provider) bool {
	return p.Backfill.Mode != modePushIncremental && (p.RelinkRerunsBackfill == nil || *p.RelinkRerunsBackfill)
}

// pullable returns the slugs of the resources to fetch, in this order: the list of devices, summaries, workout streams,
// timeseries. Later ones may refer to earlier ones.
func (l *planner) pullable(p *healthdata.Provider, c *healthdata.Connection) []string {
	available := p.Availability(c.Scopes)
	extended := l.extended[p.Slug]
	pulls := func(slug string) bool { return extended != nil && !c.Demo && extended.Pulls(slug) }
	var first, summaries, streams, series []string
	for _, r := range p.Resources {
		if !c.Demo && available[r.Resource].Status != healthdata.Available {
			continue
		}
		switch healthdata.ResourceBySlug(r.Resource).Class {
		case healthdata.ClassSummary:
			summaries = append(summaries, r.Resource)
		case healthdata.ClassTimeseries:
			series = append(series, r.Resource)
		case healthdata.ClassMetadata:
			if r.Resource == deviceSlug && pulls(deviceSlug) {
				first = append(first, r.Resource)
			}
		case healthdata.ClassStream:
			if r.Resource == streamSlug && pulls(streamSlug) {
				streams = append(streams, r.Resource)
			}
		}
	}
	return slices.Concat(first, summaries, streams, series)
}

// plannedHistory is the task of a history. If the history is already complete, event is its event.
type plannedHistory struct {
	Task
	event *healthlab.Event
}

// planResource makes the tasks of one resource: that of its history, and that of its new data.
func (l *planner) planResource(in planInput, p *healthdata.Provider, resource string) (plannedHistory, Task, error) {
	ref, c, at := in.ref, in.connection, in.at
	days, _ := p.Backfill.Range(resource, healthdata.HistoryChoice(in.settings.HistoryDays[p.Slug]))
	if c.Demo {
		days = demoDays
	}
	from := at.AddDate(0, 0, -days)
	h := plannedHistory{Task: Task{
		Key: Key{ref, resource, History}, Linked: c.LinkedAt, Client: c.Client, Status: Scheduled, ScheduledAt: at,
		From: from, To: at, Due: at,
	}}
	news := Task{
		Key: Key{ref, resource, News}, Linked: c.LinkedAt, Client: c.Client, Status: Scheduled, ScheduledAt: at, Seen: at, Swept: at, Due: at.Add(l.every),
		Floor: at.Add(-newsBefore),
	}
	switch p.Backfill.Mode {
	case modePushIncremental: // all history arrives as new data
		news.Seen, news.Floor, news.Due = from, from, at
	case modeNone:
		news.Seen, news.Due = at.Add(-24*time.Hour), at
		news.Floor = news.Seen
		h.From = h.To
	}
	if resource == deviceSlug {
		news.Due = at
		return h, news, nil
	}
	h.limitToWindow(in.user)
	if p.Backfill.Mode == modePushIncremental || !h.From.Before(h.To) {
		h.Status, h.StartedAt, h.EndedAt, h.Due = Success, at, at, time.Time{}
		if p.Backfill.Mode == modeNone {
			return h, news, nil
		}
		e, ok, err := l.users.HistoricalEvent(ref.Team, ref.User, ref.Provider, resource, h.From, h.To)
		if ok {
			h.event = &e
		}
		return h, news, err
	}
	return h, news, nil
}

// limitToWindow limits the task's range to the user's ingestion window. If the range is outside of the window, it
// becomes empty: From is set to To.
func (t *Task) limitToWindow(u *healthdata.User) {
	if u.IngestionStart != nil {
		t.From = later(t.From, u.IngestionStart.At(u.Location()))
	}
	if u.IngestionEnd != nil {
		t.To = earlier(t.To, u.IngestionEnd.AddDays(1).At(u.Location()))
	}
	if t.To.Before(t.From) {
		t.From = t.To
	}
}

// demoDays is the number of days of generated history, independent of the provider's record.
const demoDays = 30
