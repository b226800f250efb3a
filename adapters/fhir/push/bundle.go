package push

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/adapters/fhir"
	"github.com/healthlab-dev/healthlab/aggregate/continuous/ehr"
)

// createdOnce lists the types whose resources are created and never updated, because servers have data of their own
// about them.
var createdOnce = []string{"Patient", "Organization", "Practitioner"}

// item is a resource to be sent.
type item struct {
	fhir.Resource
	result ehr.Result // record of the sent resource; without the outcome, which the server's answer adds
}

func (i *item) key() string { return ehr.SentKey(i.Type, i.ID) }

type identifier struct {
	System string `json:"system"`
	Value  string `json:"value"`
}

// names makes the identifiers by which a server knows resources of this service.
type names struct {
	url     string
	patient string // type and id of the person's Patient, as ehr.SentKey returns them
	own     identifier
}

func (n *names) of(kind, id string) identifier {
	if ehr.SentKey(kind, id) == n.patient {
		return n.own
	}
	return identifier{n.url + "/" + kind, id}
}

func (i identifier) search() string {
	escape := strings.NewReplacer(`\`, `\\`, `,`, `\,`, `$`, `\$`, `|`, `\|`)
	return "identifier=" + url.QueryEscape(escape.Replace(i.System)+"|"+escape.Replace(i.Value))
}

func fullURL(key string) string {
	return "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(key)).String()
}

type entry struct {
	FullURL  string         `json:"fullUrl"`
	Resource map[string]any `json:"resource"`
	Request  request        `json:"request"`
}

type request struct {
	Method      string `json:"method"`
	URL         string `json:"url"`
	IfNoneExist string `json:"ifNoneExist,omitempty"`
}

// transaction returns a transaction that sends items. taken reports whether the server has a resource that is not
// among the items.
func (n *names) transaction(items []item, taken func(key string) bool) ([]byte, error) {
	within := map[string]bool{}
	for i := range items {
		within[items[i].key()] = true
	}
	var out struct {
		ResourceType string  `json:"resourceType"`
		Type         string  `json:"type"`
		Entry        []entry `json:"entry"`
	}
	out.ResourceType, out.Type = "Bundle", "transaction"
	for i := range items {
		v := &items[i]
		body, err := n.body(v, func(key string) bool { return within[key] }, taken)
		if err != nil {
			return nil, err
		}
		id := n.of(v.Type, v.ID)
		e := entry{FullURL: fullURL(v.key()), Resource: body, Request: request{Method: "PUT", URL: v.Type + "?" + id.search()}}
		if slices.Contains(createdOnce, v.Type) {
			e.Request = request{Method: "POST", URL: v.Type, IfNoneExist: id.search()}
		}
		out.Entry = append(out.Entry, e)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write transaction: %w", err)
	}
	return text, nil
}

// body returns a resource as it is sent: with an identifier in place of its id, and with the references of
// [names.refer].
func (n *names) body(v *item, within, taken func(key string) bool) (map[string]any, error) {
	var out map[string]any
	d := json.NewDecoder(bytes.NewReader(v.JSON))
	d.UseNumber() // keeps all digits of laboratory numbers
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("read resource: %w", err)
	}
	delete(out, "id")
	if meta, ok := out["meta"].(map[string]any); ok {
		delete(meta, "versionId")
		delete(meta, "lastUpdated")
		if len(meta) == 0 {
			delete(out, "meta")
		}
	}
	own := n.of(v.Type, v.ID)
	ids, _ := out["identifier"].([]any)
	if !slices.ContainsFunc(ids, func(x any) bool {
		m, ok := x.(map[string]any)
		return ok && m["system"] == own.System && m["value"] == own.Value
	}) {
		out["identifier"] = append([]any{map[string]any{"system": own.System, "value": own.Value}}, ids...)
	}
	n.refer(out, within, taken)
	return out, nil
}

// refer rewrites the references in a value. A reference becomes a full URL if its resource is in the transaction
// (within), a conditional reference if it is the person's Patient or the server has the resource (taken), and else a
// logical reference by identifier.
func (n *names) refer(v any, within, taken func(key string) bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			n.refer(x, within, taken)
		}
	case map[string]any:
		for _, x := range v {
			n.refer(x, within, taken)
		}
		key, ok := v["reference"].(string)
		kind, id, relative := strings.Cut(key, "/")
		if !ok || !relative || strings.ContainsAny(id, "/?") || strings.Contains(kind, ":") {
			return
		}
		switch as := n.of(kind, id); {
		case within(key):
			v["reference"] = fullURL(key)
		case key == n.patient || taken(key):
			v["reference"] = kind + "?" + as.search()
		default:
			delete(v, "reference")
			v["type"], v["identifier"] = kind, map[string]any{"system": as.System, "value": as.Value}
		}
	}
}

// withdrawn returns a resource with the status entered-in-error and only the required elements. It replaces a resource
// that no longer exists. patient is the reference to the Patient. It returns false for types without that status.
func withdrawn(kind, id, patient string) (fhir.Resource, bool) {
	out := map[string]any{"resourceType": kind, "id": id, "status": "entered-in-error"}
	absent := map[string]any{"extension": []any{map[string]any{
		"url": "http://hl7.org/fhir/StructureDefinition/data-absent-reason", "valueCode": "unknown",
	}}}
	subject := map[string]any{"reference": patient}
	switch kind {
	case "Observation", "DiagnosticReport":
		out["code"], out["subject"] = absent, subject
	case "ServiceRequest":
		out["intent"], out["subject"] = "order", subject
	case "Specimen":
		out["subject"] = subject
	default:
		return fhir.Resource{}, false
	}
	b, err := json.Marshal(out)
	return fhir.Resource{Type: kind, ID: id, JSON: b}, err == nil
}
