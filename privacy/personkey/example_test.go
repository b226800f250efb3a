package personkey_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/privacy/personkey"
)

// A note is encrypted with the key of its person. Deleting the key erases the note wherever
// it was copied to.
func Example() {
	ctx := context.Background()
	sealer, err := healthlab.NewAESSealer("2026", map[string][]byte{"2026": make([]byte, 32)}) // 32 random bytes
	if err != nil {
		log.Fatal(err)
	}
	keys := personkey.New(memory.NewPersonKeys(), sealer, nil)
	ann := personkey.Ref{Team: healthlab.TeamID{UUID: uuid.New()}, User: healthlab.UserID{UUID: uuid.New()}}

	box, err := keys.Seal(ctx, ann, "note/1", []byte("allergic to latex"))
	if err != nil {
		log.Fatal(err)
	}
	note, err := keys.Open(ctx, ann, "note/1", box)
	fmt.Println(string(note), err)

	if err := keys.Delete(ctx, ann); err != nil {
		log.Fatal(err)
	}
	_, err = keys.Open(ctx, ann, "note/1", box)
	fmt.Println(errors.Is(err, personkey.ErrErased))
	// Output:
	// allergic to latex <nil>
	// true
}
