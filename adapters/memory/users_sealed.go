package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/personkey"
)

// sealUser returns the row of a user.
func (s *Store) sealUser(ctx context.Context, u healthdata.User) (*userRow, error) {
	row := &userRow{user: u.Clone()}
	if b := row.user.FallbackBirthDate; b != nil {
		var err error
		if row.birth, err = s.keys.Seal(ctx, personkey.Ref{Team: u.Team, User: u.ID}, personkey.RowBirthDate, []byte(b.Value.String())); err != nil {
			return nil, err
		}
		b.Value = healthlab.Date{}
	}
	return row, nil
}

// openUser returns a copy of the user of a row. A user whose key was deleted has no birth date.
func (s *Store) openUser(ctx context.Context, row *userRow) (healthdata.User, error) {
	u := row.user.Clone()
	if row.birth == nil {
		return u, nil
	}
	text, err := s.keys.Open(ctx, personkey.Ref{Team: u.Team, User: u.ID}, personkey.RowBirthDate, row.birth)
	if errors.Is(err, personkey.ErrErased) {
		u.FallbackBirthDate = nil
		return u, nil
	}
	if err == nil {
		u.FallbackBirthDate.Value, err = healthlab.ParseDate(string(text))
	}
	if err != nil {
		return healthdata.User{}, fmt.Errorf("birth date: %w", err)
	}
	return u, nil
}
