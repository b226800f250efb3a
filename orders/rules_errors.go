package orders

import (
	"errors"

	"github.com/healthlab-dev/healthlab"
)

// broken returns the error of a rule that things as they stand forbid.
func broken(rule, msg string) error { return &healthlab.RuleError{Type: rule, Msg: msg} }

// missing returns the error of something that the team does not have.
func missing(rule, msg string) error {
	return &healthlab.RuleError{Kind: healthlab.NotFound, Type: rule, Msg: msg}
}

// notFound gives a store's NotFound the name that it has for the caller. What has a name
// keeps it.
func notFound(err error, rule, msg string) error {
	var named *healthlab.RuleError
	if healthlab.KindOf(err) == healthlab.NotFound && !errors.As(err, &named) {
		return missing(rule, msg)
	}
	return err
}

// featureNotEnabled names the rule of [featureOff].
const featureNotEnabled = "FEATURE_NOT_ENABLED"

// featureOff returns the error of something that is not switched on for the team.
func featureOff() error {
	return &healthlab.RuleError{Kind: healthlab.Forbidden, Type: featureNotEnabled, Msg: "this is not switched on for the team"}
}
