package linkingmock_test

import (
	"context"
	"fmt"
	"log"

	"go.uber.org/mock/gomock"

	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingmock"
)

// reporter stands in for the *testing.T of a test.
type reporter struct{}

func (reporter) Errorf(format string, args ...any) { log.Printf(format, args...) }
func (reporter) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

// A provider that has no data for a day.
func Example() {
	puller := linkingmock.NewMockPuller(gomock.NewController(reporter{}))
	puller.EXPECT().Pull(gomock.Any(), gomock.Any()).Return(linking.PullPage{}, nil)

	page, err := puller.Pull(context.Background(), linking.PullRequest{Resource: "steps"})
	fmt.Println(len(page.Items), err)
	// Output: 0 <nil>
}
