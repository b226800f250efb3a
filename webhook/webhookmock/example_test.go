package webhookmock_test

import (
	"context"
	"fmt"
	"log"

	"go.uber.org/mock/gomock"

	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/webhookmock"
)

// reporter stands in for the *testing.T of a test.
type reporter struct{}

func (reporter) Errorf(format string, args ...any) { log.Printf(format, args...) }
func (reporter) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

// A host's own code is tested with a notifier that accepts one message.
func Example() {
	notifier := webhookmock.NewMockNotifier(gomock.NewController(reporter{}))
	notifier.EXPECT().Notify(gomock.Any(), gomock.Any()).Return(webhook.Result{Class: webhook.ClassOK, Status: 200})

	result := notifier.Notify(context.Background(), webhook.Notification{URL: "https://receiver.example/events"})
	fmt.Println(result.Class, result.Status)
	// Output: ok 200
}
