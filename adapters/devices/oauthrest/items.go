package oauthrest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// group identifies items that are returned in one PullItem: they have the same owner, source type, device and workout.
type group struct {
	owner  string
	owned  bool
	source healthdata.SourceType
	device instrument
	// workout and sport identify the workout of samples of one workout; empty for others.
	workout, sport string
}

// instrument identifies the device of an item. Empty texts are unknown.
type instrument struct{ id, manufacturer, model, version string }

func (i instrument) info() *healthdata.DeviceInfo {
	if i.id == "" && i.model == "" {
		return nil
	}
	known := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return &healthdata.DeviceInfo{ID: known(i.id), Manufacturer: known(i.manufacturer), Model: known(i.model), Version: known(i.version)}
}

// instrument reads the device of an item. Unreadable values are unknown.
func (m *mapper) instrument(it *item, zone *time.Location) (i instrument) {
	d := m.entry.Device
	if d == nil {
		return i
	}
	r := &reader{it: it, zone: zone}
	for _, f := range []struct {
		from *Field
		to   *string
	}{{d.ID, &i.id}, {d.Manufacturer, &i.manufacturer}, {d.Model, &i.model}, {d.Version, &i.version}} {
		if f.from != nil {
			*f.to, _ = r.word(f.from, "device")
		}
	}
	if i.id == "" && i.model == "" {
		return instrument{}
	}
	return i
}

// gathering collects the items of a response in groups. Groups and items keep the order of the response.
type gathering struct {
	groups []group
	pulled []linking.PullItem
	// last is the time of the last added sample.
	last healthlab.Time
}

func (g *gathering) into(of group) *linking.PullItem {
	i := slices.Index(g.groups, of)
	if i < 0 {
		i = len(g.groups)
		g.groups = append(g.groups, of)
		p := linking.PullItem{Source: healthdata.Source{Type: of.source}, Device: of.device.info()}
		if of.owned {
			p.Owner = &of.owner
		}
		if of.workout != "" {
			p.Workout = &of.workout
		}
		if of.sport != "" {
			p.Source.Sport = &of.sport
		}
		g.pulled = append(g.pulled, p)
	}
	return &g.pulled[i]
}

func (g *gathering) sample(of group, s healthdata.Sample) {
	p := g.into(of)
	p.Samples = append(p.Samples, s)
	g.last = s.Timestamp
}

// held is a sample of a resource with Combine that the cursor carries to the next page, because its hour may continue
// there.
type held struct {
	Owner  string                `json:"o,omitempty"`
	Owned  bool                  `json:"b,omitempty"`
	Source healthdata.SourceType `json:"s,omitempty"`
	Sample healthdata.Sample     `json:"v"`
}

func (g *gathering) addHeld(before []held) {
	for _, h := range before {
		g.sample(group{owner: h.Owner, owned: h.Owned, source: h.Source}, h.Sample)
	}
}

// popLast removes and returns the samples with the timestamp of the last added sample.
func (g *gathering) popLast() (back []held) {
	for i := range g.pulled {
		of := g.groups[i]
		kept := g.pulled[i].Samples[:0]
		for _, s := range g.pulled[i].Samples {
			if s.Timestamp.Equal(g.last.Time) {
				back = append(back, held{of.owner, of.owned, of.source, s})
				continue
			}
			kept = append(kept, s)
		}
		g.pulled[i].Samples = kept
	}
	return back
}

// combine merges the items of each hour into one sample. It drops items at times for which whole returns false, because
// their hour was requested only in part.
func (g *gathering) combine(resource string, whole func(time.Time) bool) {
	for i := range g.pulled {
		p := &g.pulled[i]
		p.Samples = slices.DeleteFunc(p.Samples, func(s healthdata.Sample) bool { return !whole(s.Timestamp.Time) })
		p.Samples = healthdata.CombineEntries(resource, p.Samples)
	}
}

// mapItems maps the items of the decoded response doc into groups, in the order of the response. zone is the time zone
// of the user. mapItems returns the number of elements on the page. A response of another shape is an error. An
// unreadable item is reported in its group.
func (m *mapper) mapItems(g *gathering, doc any, zone *time.Location) (int, error) {
	list, count, ok := items(doc, m.entry.Items)
	if !ok {
		return 0, shapeError("items must select an object, or the elements of a list")
	}
	for i := range list {
		it := &list[i]
		if !m.matches(it) {
			continue
		}
		r := &reader{it: it, zone: zone}
		of := group{device: m.instrument(it, zone)}
		if m.entry.Owner != "" {
			v, _ := it.find(m.entry.Owner)
			of.owner, _ = text(v)
			of.owned = true
		}
		if m.entry.SourceType != nil {
			s, _ := r.word(m.entry.SourceType, "source_type")
			of.source = healthdata.SourceType(s)
		}
		if m.entry.Workout != nil {
			of.workout, _ = r.word(m.entry.Workout, "workout")
		}
		if m.entry.Sport != nil {
			of.sport, _ = r.word(m.entry.Sport, "sport")
		}
		m.mapItem(r, g, of)
	}
	return count, nil
}

// mapItem maps the item of r, and adds the result or the problems of the item to the group of.
func (m *mapper) mapItem(r *reader, g *gathering, of group) {
	var sample healthdata.Sample
	var summary healthdata.Summary
	found := true
	switch {
	case m.entry.Resource == deviceSlug:
		if of.device == (instrument{}) {
			r.p.Add("missing", "the device of the provider must have an id or a model", "device")
		}
	case m.entry.Sample != nil:
		sample, found = m.sample(r)
	default:
		summary = m.summary(r)
	}
	switch {
	case len(r.p) > 0:
		p := g.into(of)
		doc, _ := json.Marshal(r.it.value())
		p.Unparsed = append(p.Unparsed, linking.UnparsedItem{Item: doc, Problems: r.p})
	case m.entry.Resource == deviceSlug:
		if p := g.into(of); p.Device != nil {
			p.Device.Raw, _ = json.Marshal(r.it.value())
		}
	case !found:
	case m.entry.Sample != nil:
		g.sample(of, sample)
	default:
		p := g.into(of)
		healthdata.HeadOf(summary).Raw, _ = json.Marshal(r.it.value())
		p.Summaries = append(p.Summaries, summary)
	}
}

// matches reports whether an item fulfils the conditions of the entry.
func (m *mapper) matches(it *item) bool {
	for _, w := range m.entry.Where {
		v, _ := it.find(w.At)
		s, _ := text(v)
		if w.In != nil && !slices.Contains(w.In, s) || slices.Contains(w.NotIn, s) {
			return false
		}
	}
	return true
}

func shapeError(rule string) error {
	return fmt.Errorf("%w: the answer of the provider does not have the configured form: %s", healthlab.Unavailable, rule)
}
