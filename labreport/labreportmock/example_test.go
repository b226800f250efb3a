package labreportmock_test

import (
	"context"
	"fmt"
	"log"

	"go.uber.org/mock/gomock"

	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/labreportmock"
)

// reporter stands in for the *testing.T of a test.
type reporter struct{}

func (reporter) Errorf(format string, args ...any) { log.Printf(format, args...) }
func (reporter) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

// An extractor that finds one page.
func Example() {
	extractor := labreportmock.NewMockTextExtractor(gomock.NewController(reporter{}))
	extractor.EXPECT().Check(gomock.Any(), gomock.Any()).Return(1, nil)

	pages, err := extractor.Check(context.Background(), labreport.File{Type: "application/pdf"})
	fmt.Println(pages, err)
	// Output: 1 <nil>
}
