package accesslog_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

func Example() {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := accesslog.New(memory.New(nil).AccessLog(), key, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, team := context.Background(), healthlab.TeamID{UUID: uuid.New()}
	for _, operation := range []string{"read_user", "read_sleep"} {
		e := accesslog.Entry{Team: team, At: time.Now(), Actor: "key:7", Person: healthlab.UserID{UUID: uuid.New()}, Kind: "data", Operation: operation, Status: 200}
		if err := log.Record(ctx, e); err != nil {
			fmt.Println(err)
			return
		}
	}
	lines, err := log.Lines(ctx, accesslog.Query{Team: team, N: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	head, err := log.Verify(ctx, team)
	fmt.Println(head.Seq, err)

	lines[1].Operation = "read_team"
	v := accesslog.Verifier{}
	fmt.Println(v.Check(&lines[0]))
	fmt.Println(v.Check(&lines[1]))
	// Output:
	// 2 <nil>
	// <nil>
	// conflict: access log: line 2 was changed
}
