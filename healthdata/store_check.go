package healthdata

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// Normal returns a user in the form in which stores keep it: times in UTC to the
// microsecond, connections by creation and then by provider, empty lists as nil, without
// ConnectedSources, which are derived. It shares nothing with u. Two connections of one
// provider and text that [healthlab.CheckText] refuses are [healthlab.Invalid].
func (u User) Normal() (User, error) {
	u = u.Clone()
	u.ConnectedSources = nil
	u.CreatedOn = healthlab.At(u.CreatedOn.Time)
	u.FallbackTimeZone.UpdatedAt = healthlab.At(u.FallbackTimeZone.UpdatedAt.Time)
	u.DeletedAt = healthlab.At(u.DeletedAt).Time
	texts := []string{u.ClientUserID, u.FallbackTimeZone.ID, u.FallbackTimeZone.SourceSlug}
	if b := u.FallbackBirthDate; b != nil {
		b.UpdatedAt = healthlab.At(b.UpdatedAt.Time)
		texts = append(texts, b.SourceSlug)
	}
	if len(u.Consents) == 0 {
		u.Consents = nil
	}
	for _, c := range u.Consents {
		for _, at := range []*healthlab.Time{c.GrantedAt, c.WithdrawnAt} {
			if at != nil {
				*at = healthlab.At(at.Time)
			}
		}
		texts = append(texts, c.Provider, c.Version, string(c.Means))
	}
	if len(u.Connections) == 0 {
		u.Connections = nil
	}
	seen := map[string]bool{}
	for i := range u.Connections {
		c := &u.Connections[i]
		if seen[c.Provider] {
			return User{}, fmt.Errorf("%w: two connections of one provider", healthlab.Invalid)
		}
		seen[c.Provider] = true
		c.CreatedOn, c.LinkedAt, c.Due = healthlab.At(c.CreatedOn).Time, healthlab.At(c.LinkedAt).Time, healthlab.At(c.Due).Time
		if len(c.Scopes) == 0 {
			c.Scopes = nil
		}
		texts = append(append(texts, c.Client, c.Provider, string(c.Status)), c.Scopes...)
		if c.ExternalUserID != nil {
			texts = append(texts, *c.ExternalUserID)
		}
		if f := c.Failure; f != nil {
			f.At = healthlab.At(f.At).Time
			texts = append(texts, f.Type, f.Message, f.Details)
		}
	}
	slices.SortFunc(u.Connections, func(a, b Connection) int {
		return cmp.Or(a.CreatedOn.Compare(b.CreatedOn), cmp.Compare(a.Provider, b.Provider))
	})
	return u, healthlab.CheckText(texts...)
}

// Clone returns a copy of a user that shares nothing with it.
func (u User) Clone() User {
	u.FallbackBirthDate = clone(u.FallbackBirthDate)
	u.IngestionStart, u.IngestionEnd = clone(u.IngestionStart), clone(u.IngestionEnd)
	u.Consents = slices.Clone(u.Consents)
	for i := range u.Consents {
		c := &u.Consents[i]
		c.GrantedAt, c.WithdrawnAt = clone(c.GrantedAt), clone(c.WithdrawnAt)
	}
	u.ConnectedSources = slices.Clone(u.ConnectedSources)
	u.Connections = slices.Clone(u.Connections)
	for i := range u.Connections {
		c := &u.Connections[i]
		c.ExternalUserID, c.Scopes, c.Failure = clone(c.ExternalUserID), slices.Clone(c.Scopes), clone(c.Failure)
	}
	return u
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// CheckRecords is a [healthlab.InvalidError] unless the records are what PutRecords
// takes: of one resource, each id once, each with a document, text that
// [healthlab.CheckText] accepts. Stores call it before they write.
func CheckRecords(records []Record) error {
	var p healthlab.Problems
	seen := make(map[uuid.UUID]bool, len(records))
	for i := range records {
		r := &records[i]
		if r.Resource == "" || r.Resource != records[0].Resource {
			p.Add("resource", "one resource for all", i, "resource")
		}
		if r.ID == uuid.Nil || seen[r.ID] {
			p.Add("id", "an id stands once", i, "id")
		}
		seen[r.ID] = true
		if len(r.Doc) == 0 {
			p.Add("missing", "a record has a document", i, "doc")
		}
		if healthlab.CheckText(r.Resource, r.Provider, string(r.SourceType)) != nil ||
			bytes.IndexByte(r.Doc, 0) >= 0 || bytes.IndexByte(r.Raw, 0) >= 0 {
			p.Add("text", "text is UTF-8 without NUL", i)
		}
	}
	return p.Err()
}

// CheckBatches is a [healthlab.InvalidError] unless the batches are what MergeSamples
// takes: each series once, each with samples that [series.Block.Validate] accepts, text
// that [healthlab.CheckText] accepts. Stores call it before they write.
func CheckBatches(batches []SampleBatch) error {
	var p healthlab.Problems
	seen := map[SeriesKey]bool{}
	for i := range batches {
		b := &batches[i]
		if len(batches) > 1 { // most uploads have one
			if seen[b.Key] {
				p.Add("key", "a series stands once", i, "key")
			}
			seen[b.Key] = true
		}
		if !b.Key.Storable() {
			p.Add("text", "text is UTF-8 without NUL", i, "key")
		}
		switch {
		case b.Samples == nil || b.Samples.Len() == 0:
			p.Add("missing", "a batch has samples", i, "samples")
		case b.Samples.Validate() != nil:
			p.Add("samples", "samples ascend by time and are whole", i, "samples")
		case slices.ContainsFunc(b.Samples.Runs, unstorable):
			p.Add("text", "text is UTF-8 without NUL", i, "samples")
		}
	}
	return p.Err()
}

// Storable reports whether every store can keep the texts of a key. A store that is asked
// for a key that is not knows no such series.
func (k *SeriesKey) Storable() bool {
	return healthlab.CheckText(k.Resource, k.Provider, string(k.SourceType), k.Part) == nil
}

// unstorable reports whether a text of a run is one that not every store can keep.
func unstorable(r series.Run) bool {
	a := &r.Attrs
	return healthlab.CheckText(a.Type, a.Unit, a.App, a.Sport, a.Location, a.Intensity,
		a.DeliveryMode, a.DeliveryForm, a.BolusPurpose, a.Text, a.Tags) != nil
}

// CheckRemoval is [healthlab.Invalid] unless r is what Remove takes: each series once,
// times that ascend, text that [healthlab.CheckText] accepts. Stores call it before they
// write.
func CheckRemoval(r *Removal) error {
	var p healthlab.Problems
	seen := make(map[SeriesKey]bool, len(r.Samples))
	for i := range r.Samples {
		s := &r.Samples[i]
		if seen[s.Key] {
			p.Add("key", "a series stands once", "samples", i, "key")
		}
		seen[s.Key] = true
		if !s.Key.Storable() {
			p.Add("text", "text is UTF-8 without NUL", "samples", i, "key")
		}
		for k := 1; k < len(s.Times); k++ {
			if s.Times[k] <= s.Times[k-1] {
				p.Add("order", "times ascend", "samples", i, "times", k)
				break
			}
		}
	}
	if err := p.Err(); err != nil {
		return err
	}
	return healthlab.CheckText(r.Resource, r.Parts)
}
