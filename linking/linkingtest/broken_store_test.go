package linkingtest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

// brokenLinking passes on what it is not told to break.
type brokenLinking struct {
	overriddenLinking
	users       healthdata.Users
	mu          sync.Mutex
	owners      map[linking.SessionID]healthlab.TeamID
	kept        map[linking.SessionID]linking.Session
	credentials map[string]linking.Credential
}

type linkChange = func(*healthdata.User) ([]healthlab.Event, error)

func (b *brokenLinking) InsertSession(ctx context.Context, s linking.Session) error {
	b.mu.Lock()
	b.owners[s.ID], b.kept[s.ID] = s.Team, s
	b.mu.Unlock()
	return b.Store.InsertSession(ctx, s)
}

func (b *brokenLinking) Complete(ctx context.Context, c linking.Completion) (linking.Session, error) {
	b.mu.Lock()
	b.credentials[c.Credential.User.String()] = c.Credential
	b.mu.Unlock()
	if b.complete != nil {
		return b.complete(ctx, c)
	}
	return b.Store.Complete(ctx, c)
}

// inTwoSteps completes a session and its user one after the other.
func (b *brokenLinking) inTwoSteps(ctx context.Context, c linking.Completion) (linking.Session, error) {
	s, err := b.Store.UpdateSession(ctx, c.Team, c.Session, func(s *linking.Session) error {
		_, err := c.Change(s, &healthdata.User{})
		return err
	})
	if err != nil {
		return s, err
	}
	_, err = b.users.Update(ctx, c.Team, s.User, func(u *healthdata.User) ([]healthlab.Event, error) {
		return c.Change(&linking.Session{}, u)
	})
	return s, err
}

func brokenLinks(suite func(*testing.T, func(testing.TB) linkingtest.StoreHarness), how func(*brokenLinking)) func(*testing.T) {
	return func(t *testing.T) {
		suite(t, func(testing.TB) linkingtest.StoreHarness {
			s := memory.New(nil)
			b := &brokenLinking{
				overriddenLinking: overriddenLinking{Store: s.Linking()}, users: s.Users(), owners: map[linking.SessionID]healthlab.TeamID{},
				kept: map[linking.SessionID]linking.Session{}, credentials: map[string]linking.Credential{},
			}
			how(b)
			return linkingtest.StoreHarness{Linking: b, Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog()}
		})
	}
}

func linkMutant(name, dies string, how func(*brokenLinking)) conformance.Broken {
	return conformance.Broken{Name: "linking: " + name, Suite: brokenLinks(linkingtest.RunStore, how), Subtest: dies}
}

var brokenStores = []conformance.Broken{
	linkMutant("lets a code work twice", "Code/WorksOnce", func(b *brokenLinking) {
		b.tryCode = func(ctx context.Context, team healthlab.TeamID, client [32]byte, text string, change func(*linking.CodeAttempt)) error {
			return b.Store.TryCode(ctx, team, client, text, func(t *linking.CodeAttempt) {
				change(t)
				if t.Code != nil {
					t.Code.UsedAt = t.Since
				}
			})
		}
	}),
	linkMutant("reads before it writes", "Code/RacingTriesGetItOnce", func(b *brokenLinking) {
		both := make(chan struct{})
		b.tryCode = func(ctx context.Context, team healthlab.TeamID, client [32]byte, text string, change func(*linking.CodeAttempt)) error {
			var seen linking.CodeAttempt
			_ = b.Store.TryCode(ctx, team, client, text, func(t *linking.CodeAttempt) {
				seen = *t
				if t.Code != nil {
					c := *t.Code
					seen.Code = &c
				}
			})
			select { // two of them have read before either of them writes
			case both <- struct{}{}:
			case <-both:
			}
			return b.Store.TryCode(ctx, team, client, text, func(t *linking.CodeAttempt) {
				*t = seen
				change(t)
			})
		}
	}),
	linkMutant("takes a code twice", "Code/TakenUntilItExpires", func(b *brokenLinking) {
		b.insertCode = func(ctx context.Context, c linking.Code) error {
			if err := b.Store.InsertCode(ctx, c); !errors.Is(err, healthlab.Conflict) {
				return err
			}
			return nil
		}
	}),
	linkMutant("forgets wrong tries", "Code/CountsWrongTries", func(b *brokenLinking) {
		b.tryCode = func(ctx context.Context, team healthlab.TeamID, client [32]byte, text string, change func(*linking.CodeAttempt)) error {
			return b.Store.TryCode(ctx, team, client, text, func(t *linking.CodeAttempt) {
				since, wrong := t.Since, t.Wrong
				change(t)
				t.Since, t.Wrong = since, wrong
			})
		}
	}),
	linkMutant("forgets which tries were first", "Code/WrongTriesInHalves", func(b *brokenLinking) {
		b.tryCode = func(ctx context.Context, team healthlab.TeamID, client [32]byte, text string, change func(*linking.CodeAttempt)) error {
			return b.Store.TryCode(ctx, team, client, text, func(t *linking.CodeAttempt) {
				first := t.TeamFirst
				change(t)
				t.TeamFirst = first
			})
		}
	}),
	linkMutant("gives new codes old counts", "Code/WrongTriesInHalves", func(b *brokenLinking) {
		b.tryCode = func(ctx context.Context, team healthlab.TeamID, client [32]byte, text string, change func(*linking.CodeAttempt)) error {
			return b.Store.TryCode(ctx, team, client, text, func(t *linking.CodeAttempt) {
				if t.Code != nil {
					t.Code.FirstBefore = 0
				}
				change(t)
			})
		}
	}),
	linkMutant("counts all clients as one", "Code/CountsWrongTries", func(b *brokenLinking) {
		b.tryCode = func(ctx context.Context, team healthlab.TeamID, _ [32]byte, text string, change func(*linking.CodeAttempt)) error {
			return b.Store.TryCode(ctx, team, [32]byte{}, text, change)
		}
	}),
	linkMutant("sees other teams' sessions", "Session/OtherTeam", func(b *brokenLinking) {
		b.session = func(ctx context.Context, _ healthlab.TeamID, id linking.SessionID) (linking.Session, error) {
			return b.Store.Session(ctx, b.owners[id], id)
		}
	}),
	linkMutant("keeps the caller's slices", "Session/Aliasing", func(b *brokenLinking) {
		b.session = func(ctx context.Context, team healthlab.TeamID, id linking.SessionID) (linking.Session, error) {
			s, err := b.Store.Session(ctx, team, id)
			s.Pending, s.Attempts, s.Options = b.kept[id].Pending, b.kept[id].Attempts, b.kept[id].Options
			return s, err
		}
	}),
	linkMutant("drops the challenge", "Session/RoundTrip", func(b *brokenLinking) {
		b.session = func(ctx context.Context, team healthlab.TeamID, id linking.SessionID) (linking.Session, error) {
			s, err := b.Store.Session(ctx, team, id)
			s.Challenge = linking.Challenge{}
			return s, err
		}
	}),
	linkMutant("lets change move a session", "Session/UpdateKeepsItsOwn", func(b *brokenLinking) {
		b.updateSession = func(ctx context.Context, team healthlab.TeamID, id linking.SessionID, change func(*linking.Session) error) (linking.Session, error) {
			var asked linking.Session
			s, err := b.Store.UpdateSession(ctx, team, id, func(s *linking.Session) error {
				err := change(s)
				asked = *s
				return err
			})
			s.User = asked.User
			return s, err
		}
	}),
	linkMutant("writes what change refused", "Session/ErrorWritesNothing", func(b *brokenLinking) {
		b.updateSession = func(ctx context.Context, team healthlab.TeamID, id linking.SessionID, change func(*linking.Session) error) (linking.Session, error) {
			var own error
			s, err := b.Store.UpdateSession(ctx, team, id, func(s *linking.Session) error {
				own = change(s)
				return nil
			})
			return s, errors.Join(err, own)
		}
	}),
	linkMutant("loses updates", "Session/NoLostUpdates", func(b *brokenLinking) {
		b.updateSession = func(ctx context.Context, team healthlab.TeamID, id linking.SessionID, change func(*linking.Session) error) (linking.Session, error) {
			old, err := b.Store.Session(ctx, team, id)
			if err != nil {
				return old, err
			}
			conformance.Pause()
			return b.Store.UpdateSession(ctx, team, id, func(s *linking.Session) error {
				*s = old
				return change(s)
			})
		}
	}),
	linkMutant("completes in two steps", "Complete/BadEventWritesNothing", func(b *brokenLinking) { b.complete = b.inTwoSteps }),
	linkMutant("drops events", "Complete/WritesAllOfIt", func(b *brokenLinking) {
		b.complete = func(ctx context.Context, c linking.Completion) (linking.Session, error) {
			change := c.Change
			c.Change = func(s *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
				_, err := change(s, u)
				return nil, err
			}
			return b.Store.Complete(ctx, c)
		}
	}),
	linkMutant("shares accounts", "Complete/AccountTaken", func(b *brokenLinking) {
		b.complete = func(ctx context.Context, c linking.Completion) (linking.Session, error) {
			c.Sole = nil
			return b.Store.Complete(ctx, c)
		}
	}),
	linkMutant("keeps credentials for ever", "Credential/Disconnect", func(b *brokenLinking) {
		b.credential = func(_ context.Context, _ healthlab.TeamID, user healthlab.UserID, _ string) (linking.Credential, error) {
			return b.credentials[user.String()], nil
		}
	}),
	linkMutant("drops the event of a removal", "Credential/Disconnect", func(b *brokenLinking) {
		b.disconnect = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change linkChange) (linking.Credential, error) {
			return b.Store.Disconnect(ctx, team, user, provider, func(u *healthdata.User) ([]healthlab.Event, error) {
				_, err := change(u)
				return nil, err
			})
		}
	}),
	linkMutant("shows credentials of removed connections", "Credential/OnlyOfAConnection", func(b *brokenLinking) {
		b.credential = func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (linking.Credential, error) {
			if c, err := b.Store.Credential(ctx, team, user, provider); err == nil {
				return c, nil
			}
			return b.credentials[user.String()], nil
		}
	}),
	linkMutant("goes on without its caller", "Context/Ended", func(b *brokenLinking) {
		b.updateSession = func(ctx context.Context, team healthlab.TeamID, id linking.SessionID, change func(*linking.Session) error) (linking.Session, error) {
			return b.Store.UpdateSession(context.WithoutCancel(ctx), team, id, change)
		}
	}),
	{Name: "linking: never ends a token", Suite: brokenLinks(linkingtest.RunFlows, func(b *brokenLinking) {
		b.complete = func(ctx context.Context, c linking.Completion) (linking.Session, error) {
			change := c.Change
			c.Change = func(s *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
				events, err := change(s, u)
				s.State = linking.StateStarted
				return events, err
			}
			return b.Store.Complete(ctx, c)
		}
	}), Subtest: ""},
	{Name: "linking: ends a token before the race", Suite: brokenLinks(linkingtest.RunFlows, func(b *brokenLinking) {
		b.complete = func(ctx context.Context, c linking.Completion) (linking.Session, error) {
			old, err := b.Store.Session(ctx, c.Team, c.Session)
			if err != nil {
				return old, err
			}
			conformance.Pause()
			change := c.Change
			c.Change = func(s *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
				*s = old
				return change(s, u)
			}
			return b.Store.Complete(ctx, c)
		}
	}), Subtest: ""},
}
