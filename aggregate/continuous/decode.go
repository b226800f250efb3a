package continuous

import (
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
)

// decoder reads request bodies and collects problems.
type decoder struct {
	strictjson.Reader
	questions *aggregate.Service
}

// object reads one JSON text, which must be an object with these keys.
func (d *decoder) object(data []byte, keys ...string) (n strictjson.Node, ok bool) {
	n, err := strictjson.Parse(data)
	if err != nil {
		d.Fault(codeBody, "must be valid JSON", nil)
		return n, false
	}
	return n, d.Object(&n, nil, keys...)
}

// definition reads and checks the request body that creates a query.
func (d *decoder) definition(data []byte) (out Definition) {
	n, ok := d.object(data, "slug", "title", "query", "query_config", "scheduling_preferences", "export_preferences")
	if !ok {
		return out
	}
	if out.Slug, ok = d.Text(n.Get("slug"), strictjson.Path{"slug"}); ok {
		checkSlug(&d.Problems, out.Slug)
	}
	if out.Title, ok = d.Text(n.Get("title"), strictjson.Path{"title"}); ok {
		checkTitle(&d.Problems, out.Title)
	}
	if s := n.Get("scheduling_preferences"); !s.IsNull() {
		out.Scheduling = d.scheduling(s, strictjson.Path{"scheduling_preferences"})
		checkScheduling(&d.Problems, &out.Scheduling)
	}
	if e := n.Get("export_preferences"); !e.IsNull() {
		out.Quiet, out.FHIR = d.export(e, strictjson.Path{"export_preferences"})
	}
	var err error
	if c := n.Get("query_config"); !c.IsNull() {
		out.Config, err = d.questions.DecodeConfig(c.Raw, d.Lenient)
		note(&d.Problems, err, "query_config")
	}
	if q := n.Get("query"); q == nil {
		d.Fault(codeBody, "is required", strictjson.Path{"query"})
	} else {
		out.Query, err = d.questions.DecodeQuery(q.Raw, d.Lenient)
		note(&d.Problems, err, "query")
		if err == nil && out.FHIR {
			checkMappers(&d.Problems, &out.Query)
		}
	}
	return out
}

func (d *decoder) scheduling(n *strictjson.Node, p strictjson.Path) (s Scheduling) {
	if !d.Object(n, p, "minimum_gap_duration_second") {
		return s
	}
	if g := n.Get("minimum_gap_duration_second"); !g.IsNull() {
		if v, ok := d.Whole(g, p.At("minimum_gap_duration_second")); ok {
			s.MinimumGap = new(int(min(v, maxGap+1)))
		}
	}
	return s
}

// export reads the object n at the path p. quiet is true if data_events.enabled is false, fhir is the value of
// fhir_observations.
func (d *decoder) export(n *strictjson.Node, p strictjson.Path) (quiet, fhir bool) {
	if !d.Object(n, p, "data_events", "fhir_observations") {
		return false, false
	}
	if f := n.Get("fhir_observations"); f != nil {
		fhir = d.Boolean(f, p.At("fhir_observations"))
	}
	events := n.Get("data_events")
	if events.IsNull() || !d.Object(events, p.At("data_events"), "enabled") || events.Get("enabled") == nil {
		return false, fhir
	}
	return !d.Boolean(events.Get("enabled"), p.At("data_events", "enabled")), fhir
}

// patch reads the request body that changes a query.
func (d *decoder) patch(data []byte) (out Patch) {
	n, ok := d.object(data, "title", "scheduling_preferences")
	if !ok {
		return out
	}
	if t := n.Get("title"); t != nil {
		if s, ok := d.Text(t, strictjson.Path{"title"}); ok {
			out.Title = &s
		}
	}
	if s := n.Get("scheduling_preferences"); s != nil {
		out.Scheduling = &Scheduling{}
		if !s.IsNull() {
			*out.Scheduling = d.scheduling(s, strictjson.Path{"scheduling_preferences"})
		}
	}
	return out
}
