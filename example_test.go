package healthlab_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// A person asks to cancel a lab order. Whatever goes wrong on the way, the caller
// learns what to do next from the kind of the fault, and a program from the rule's name.
func Example() {
	cancel := func(arrived bool) error {
		if arrived {
			return fmt.Errorf("cancel order: %w", &healthlab.RuleError{
				Type: "CANCEL_NOT_ALLOWED", Msg: "the sample has reached the laboratory",
			})
		}
		return nil
	}

	err := cancel(true)
	fmt.Println(err)
	fmt.Println("wrong moment:", errors.Is(err, healthlab.Precondition))

	var rule *healthlab.RuleError
	if errors.As(err, &rule) {
		fmt.Println("error_type:", rule.Type)
	}
	// Output:
	// cancel order: CANCEL_NOT_ALLOWED: the sample has reached the laboratory
	// wrong moment: true
	// error_type: CANCEL_NOT_ALLOWED
}

// A device in Kathmandu writes local time with its offset. It is kept and published in
// UTC; the local day is the caller's own question.
func ExampleParseTimeOffset() {
	woke, offset, err := healthlab.ParseTimeOffset("2026-03-01T05:30:00.250+05:45")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(woke)
	fmt.Println(healthlab.DateOf(woke.In(time.FixedZone("", offset))))
	// Output:
	// 2026-02-28T23:45:00.25+00:00
	// 2026-03-01
}

// All that is wrong with an input is said at once, by place and rule, never by value.
func ExampleProblems() {
	var person healthlab.Problems
	person.Add("missing", "required", "last_name")
	person.Add("date", "must have the form YYYY-MM-DD", "birth_date")

	var order healthlab.Problems
	order.Under(person, "patients", 0)

	fmt.Println(order.Err())
	// Output:
	// invalid: patients[0].last_name: required; patients[0].birth_date: must have the form YYYY-MM-DD
}

// A birth date has no zone and no hour, in Go and in JSON.
func ExampleDate() {
	var person struct {
		Born healthlab.Date `json:"born"`
	}
	err := json.Unmarshal([]byte(`{"born":"1990-02-28"}`), &person)
	fmt.Println(person.Born.AddDays(1), err)
	// Output: 1990-03-01 <nil>
}
