package healthdata

import (
	"slices"

	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Diary reports whether people write a resource down themselves, so that several entries
// may have one identity where a source rounds their time: carbohydrates, insulin_injection
// and note.
func (r *Resource) Diary() bool {
	return r.Slug == "carbohydrates" || r.Slug == "insulin_injection" || r.Slug == "note"
}

// CombineEntries makes one sample of the entries of a diary that have one identity: one
// timestamp, and for insulin one type. Amounts are added, texts stand below each other in
// their order, tags are united, and the interval is the longest. It is for those who read a
// source that rounds, before they hand over what it recorded; the samples are of one source.
//
// An entry that cannot be stored stays as it is, so that it is refused by itself. Samples
// of other resources are returned as they are. The samples are not changed.
func CombineEntries(resource string, samples []Sample) []Sample {
	r := ResourceBySlug(resource)
	if r == nil || !r.Diary() || len(samples) < 2 {
		return samples
	}
	type key struct {
		at   int64
		kind string
	}
	out := make([]Sample, 0, len(samples))
	first := map[key]int{}
	for i := range samples {
		s := samples[i]
		amount, ok := r.entry(&s)
		k := key{s.Timestamp.UnixMicro(), ""}
		if r.Key == KeyType {
			k.kind = deref(s.Type)
		}
		at, again := first[k]
		switch {
		case !ok:
			out = append(out, s)
		case again:
			r.join(&out[at], &s, amount)
		default:
			first[k] = len(out)
			out = append(out, s)
		}
	}
	return out
}

// entry returns the amount of an entry in the resource's unit. ok is false if it has none
// that could be stored.
func (r *Resource) entry(s *Sample) (amount float64, ok bool) {
	if s.Timestamp.IsZero() || s.Value == nil || s.Value.IsText != (r.Value == ValueText) {
		return 0, false
	}
	if s.Value.IsText {
		return 0, s.Unit == r.Unit
	}
	amount, ok = r.Convert(s.Value.Number, s.Unit, deref(s.Type))
	return amount, ok && check.Finite(amount)
}

// join adds an entry to another one.
func (r *Resource) join(to, s *Sample, amount float64) {
	if r.Value == ValueText {
		to.Value = Text(to.Value.Text + "\n" + s.Value.Text)
		to.Tags = united(to.Tags, s.Tags)
	} else {
		was, _ := r.entry(to)
		to.Value, to.Unit = Number(was+amount), r.Unit
	}
	if s.End != nil && (to.End == nil || s.End.After(to.End.Time)) {
		to.End = s.End
		if to.Start == nil {
			to.Start = s.Start
		}
	}
	to.DeliveryMode, to.DeliveryForm = agreed(to.DeliveryMode, s.DeliveryMode), agreed(to.DeliveryForm, s.DeliveryForm)
	to.BolusPurpose = purpose(to.BolusPurpose, s.BolusPurpose)
}

// united has the tags of both, each once.
func united(a, b []string) []string {
	out := slices.Clone(a)
	for _, tag := range b {
		if !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

// agreed is what two entries say, nil if they differ.
func agreed(a, b *string) *string {
	if a == nil || b == nil || *a != *b {
		return nil
	}
	return a
}

// purpose is what injections were for that are one now.
func purpose(a, b *string) *string {
	if a == nil || b == nil || *a == *b {
		return agreed(a, b)
	}
	both := "mixed"
	for _, p := range []string{*a, *b} {
		if p != "meal" && p != "correction" && p != both {
			both = "unknown"
		}
	}
	return &both
}
