package memory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// cloneUser copies a user with everything that it points to.
func cloneUser(u healthdata.User) healthdata.User {
	u.FallbackBirthDate = clone(u.FallbackBirthDate)
	u.IngestionStart = clone(u.IngestionStart)
	u.IngestionEnd = clone(u.IngestionEnd)
	u.Consents = slices.Clone(u.Consents)
	for i := range u.Consents {
		c := &u.Consents[i]
		c.GrantedAt, c.WithdrawnAt = clone(c.GrantedAt), clone(c.WithdrawnAt)
	}
	u.Connections = slices.Clone(u.Connections)
	for i := range u.Connections {
		c := &u.Connections[i]
		c.ExternalUserID = clone(c.ExternalUserID)
		c.Scopes = slices.Clone(c.Scopes)
		c.Failure = clone(c.Failure)
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

// keepUser returns a copy of a user in the form in which it is kept, or healthlab.Invalid.
func keepUser(u healthdata.User) (healthdata.User, error) {
	u = cloneUser(u)
	u.ConnectedSources = nil
	u.CreatedOn = healthlab.At(u.CreatedOn.Time)
	u.FallbackTimeZone.UpdatedAt = healthlab.At(u.FallbackTimeZone.UpdatedAt.Time)
	u.DeletedAt = instant(u.DeletedAt)
	text := []string{u.ClientUserID, u.FallbackTimeZone.ID, u.FallbackTimeZone.SourceSlug}
	if b := u.FallbackBirthDate; b != nil {
		b.UpdatedAt = healthlab.At(b.UpdatedAt.Time)
		text = append(text, b.SourceSlug)
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
		text = append(text, c.Provider, c.Version, string(c.Means))
	}
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

// checkText refuses text that not every store can keep.
func checkText(text ...string) error {
	for _, s := range text {
		if strings.Contains(s, "\x00") {
			return fmt.Errorf("%w: text does not contain NUL", healthlab.Invalid)
		}
		if !utf8.ValidString(s) {
			return fmt.Errorf("%w: text is UTF-8", healthlab.Invalid)
		}
	}
	return nil
}
