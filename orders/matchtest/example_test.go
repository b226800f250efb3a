package matchtest_test

import (
	"fmt"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
)

// Each case needs orders in certain roles.
func Example() {
	for _, rule := range matchtest.Rules() {
		if rule.Case == orders.MatchSeveralPeople {
			fmt.Println(rule.Case, rule.OrderRoles)
		}
	}
	// Output: multiple_demo_match [first_patient second_patient]
}
