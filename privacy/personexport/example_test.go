package personexport_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
)

// letters is a host's own source of an export.
type letters struct{}

func (letters) Files(context.Context, healthlab.TeamID, healthlab.UserID) ([]string, error) {
	return []string{"1.txt"}, nil
}

func (letters) Write(_ context.Context, _ healthlab.TeamID, _ healthlab.UserID, _ string, w io.Writer) error {
	_, err := io.WriteString(w, "Your kit is on its way.")
	return err
}

func Example() {
	ctx, team, store := context.Background(), healthlab.TeamID{UUID: uuid.New()}, memory.New(nil)
	providers, _ := healthdata.NewProviders(nil)
	users, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	if err != nil {
		fmt.Println(err)
		return
	}
	user, err := users.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "one"})
	if err != nil {
		fmt.Println(err)
		return
	}
	exports, err := personexport.New(store.PersonExports(), store.Blobs(), users, map[string]personexport.Source{"letters": letters{}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := exports.Start(ctx, team, user.ID)
	fmt.Println(job.Status, err)

	// Service.Run does this in the background.
	due, err := store.PersonExports().Claim(ctx, 1, time.Minute)
	if err == nil {
		err = exports.Step(ctx, due[0])
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	archive, err := exports.Open(ctx, team, user.ID, job.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	if err := archive.Write(ctx, &file); err != nil {
		fmt.Println(err)
		return
	}
	z, err := zip.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range z.File {
		fmt.Println(f.Name)
	}
	// Output:
	// in_progress <nil>
	// manifest.json
	// letters/1.txt
}
