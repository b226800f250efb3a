package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// keepUser returns a user in the form in which it is kept, or healthlab.Invalid. It
// shares nothing with u.
func keepUser(u healthdata.User) (healthdata.User, error) {
	u.ConnectedSources = nil
	u.CreatedOn = healthlab.At(u.CreatedOn.Time)
	u.FallbackTimeZone.UpdatedAt = healthlab.At(u.FallbackTimeZone.UpdatedAt.Time)
	u.DeletedAt = instant(u.DeletedAt)
	u.IngestionStart, u.IngestionEnd = clone(u.IngestionStart), clone(u.IngestionEnd)
	text := []string{u.ClientUserID, u.FallbackTimeZone.ID, u.FallbackTimeZone.SourceSlug}
	if b := clone(u.FallbackBirthDate); b != nil {
		b.UpdatedAt = healthlab.At(b.UpdatedAt.Time)
		u.FallbackBirthDate = b
		text = append(text, b.SourceSlug)
	}
	u.Connections = slices.Clone(u.Connections)
	if len(u.Connections) == 0 {
		u.Connections = nil
	}
	seen := map[string]bool{}
	for i := range u.Connections {
		c := &u.Connections[i]
		if seen[c.Provider] {
			return healthdata.User{}, fmt.Errorf("%w: two connections of one provider", healthlab.Invalid)
		}
		seen[c.Provider] = true
		c.CreatedOn, c.LinkedAt, c.Due = instant(c.CreatedOn), instant(c.LinkedAt), instant(c.Due)
		c.ExternalUserID, c.Scopes, c.Failure = clone(c.ExternalUserID), slices.Clone(c.Scopes), clone(c.Failure)
		if len(c.Scopes) == 0 {
			c.Scopes = nil
		}
		text = append(append(text, c.Client, c.Provider, string(c.Status)), c.Scopes...)
		if c.ExternalUserID != nil {
			text = append(text, *c.ExternalUserID)
		}
		if f := c.Failure; f != nil {
			f.At = instant(f.At)
			text = append(text, f.Type, f.Message, f.Details)
		}
	}
	slices.SortFunc(u.Connections, func(a, b healthdata.Connection) int {
		return cmp.Or(a.CreatedOn.Compare(b.CreatedOn), cmp.Compare(a.Provider, b.Provider))
	})
	return u, checkText(text...)
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// checkText refuses text that the server cannot keep.
func checkText(text ...string) error {
	for _, s := range text {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("%w: text does not contain NUL", healthlab.Invalid)
		}
		if !utf8.ValidString(s) {
			return fmt.Errorf("%w: text is UTF-8", healthlab.Invalid)
		}
	}
	return nil
}

// goodText reports whether the server can keep a text.
func goodText(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }
