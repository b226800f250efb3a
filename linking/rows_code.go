package linking

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// InsertCode implements [Store].
func (r *Rows) InsertCode(ctx context.Context, c Code) error {
	if err := healthlab.CheckText(c.Text); err != nil {
		return err
	}
	if c.Team.IsZero() || c.User.IsZero() || c.Text == "" {
		return fmt.Errorf("%w: link code: the team, the user and the text must be set", healthlab.Invalid)
	}
	next := keptCode{
		Digest: sha256.Sum256([]byte(c.Text)), Team: c.Team, User: c.User,
		CreatedAt: instant(c.CreatedAt), ExpiresAt: instant(c.ExpiresAt), UsedAt: instant(c.UsedAt),
	}
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		if err := lockKnownUser(tx, c.Team, c.User); err != nil {
			return err
		}
		got, err := tx.Read(
			codeTable.One(codeTable.Row(&next).Key, store.Held),
			codeCountTable.One(codeCountKey(c.Team), store.Shared), codeCountTable.One(codeCountKey(healthlab.TeamID{}), store.Shared),
		)
		if err != nil {
			return err
		}
		codes, err := codeTable.Decoded(got[0])
		if err != nil {
			return err
		}
		e := &store.Entry[keptCode]{}
		if len(codes) > 0 {
			e = codes[0]
			if next.CreatedAt.Before(e.Value.ExpiresAt) {
				return fmt.Errorf("%w: a link code with the same text is still valid", healthlab.Conflict)
			}
		}
		e.Value = next
		for i, count := range []struct{ wrong, first *int64 }{
			{&e.Value.WrongBefore, &e.Value.FirstBefore}, {&e.Value.OpenWrong, &e.Value.OpenFirst},
		} {
			counts, err := codeCountTable.Decoded(got[i+1])
			if err != nil {
				return err
			}
			if len(counts) > 0 {
				*count.wrong, *count.first = counts[0].Value.Wrong, counts[0].Value.First
			}
		}
		if err := codeTable.Put(tx, e); err != nil {
			return err
		}
		return prune(tx, codeTable.Name)
	})
}

// lockKnownUser locks a user, live or deleted, and fails if the team has no such user.
func lockKnownUser(tx store.Tx, team healthlab.TeamID, user healthlab.UserID) error {
	u, err := store.LockUser(tx, team, user)
	if err == nil && !u.Known {
		err = fmt.Errorf("%w: the team has no such user", healthlab.NotFound)
	}
	return err
}

// TryCode implements [Store].
func (r *Rows) TryCode(ctx context.Context, team healthlab.TeamID, client [32]byte, text string, change func(*CodeAttempt)) error {
	if err := healthlab.CheckText(text); err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(text))
	return r.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		got, err := tx.Read(
			codeTable.One(store.Key{ID: string(digest[:])}, store.Held),
			codeClientTable.One(codeClientKey(team, client), store.Held), codeCountTable.One(codeCountKey(team), store.Held),
		)
		if err != nil {
			return err
		}
		code, err := one(codeTable.Decoded(got[0]))
		if err != nil {
			return err
		}
		window, err := one(codeClientTable.Decoded(got[1]))
		if err != nil {
			return err
		}
		count, err := one(codeCountTable.Decoded(got[2]))
		if err != nil {
			return err
		}
		w, n := window.Value, count.Value
		try := CodeAttempt{Since: w.Since, Wrong: w.Wrong, TeamWrong: n.Wrong, TeamFirst: n.First}
		if k := code.Value; code.Revision != 0 && (k.Team == team || team.IsZero()) {
			try.Code = &Code{
				Text: text, Team: k.Team, User: k.User, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, UsedAt: k.UsedAt,
				WrongBefore: k.WrongBefore, FirstBefore: k.FirstBefore,
			}
			if team.IsZero() {
				try.Code.WrongBefore, try.Code.FirstBefore = k.OpenWrong, k.OpenFirst
			}
		}
		found := try.Code != nil
		change(&try)
		if found && try.Code != nil && !instant(try.Code.UsedAt).Equal(code.Value.UsedAt) {
			code.Value.UsedAt = instant(try.Code.UsedAt)
			if err := codeTable.Put(tx, code); err != nil {
				return err
			}
		}
		if err := putCodeClient(tx, window, codeClient{Team: team, Client: client, Since: instant(try.Since), Wrong: try.Wrong}); err != nil {
			return err
		}
		count.Value = codeCount{Team: team, Wrong: try.TeamWrong, First: try.TeamFirst}
		if count.Value.Wrong == n.Wrong && count.Value.First == n.First {
			return nil
		}
		return codeCountTable.Put(tx, count)
	})
}

// putCodeClient writes next, the window of a client, if it differs from the stored one. It deletes the row if next has
// no wrong try.
func putCodeClient(tx store.Tx, e *store.Entry[codeClient], next codeClient) error {
	was := e.Value
	switch {
	case next.Wrong == 0 && e.Revision == 0, next.Wrong == was.Wrong && next.Since.Equal(was.Since):
		return nil
	case next.Wrong == 0:
		codeClientTable.Delete(tx, e)
		return nil
	}
	e.Value = next
	if err := codeClientTable.Put(tx, e); err != nil {
		return err
	}
	return prune(tx, codeClientTable.Name)
}

func one[T any](entries []*store.Entry[T], err error) (*store.Entry[T], error) {
	if err != nil || len(entries) == 0 {
		return &store.Entry[T]{}, err
	}
	return entries[0], nil
}
