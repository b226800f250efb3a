package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{
		"selectChoices": selectChoices, "startChoices": startChoices, "lockChoices": lockChoices, "updateChoices": updateChoices,
	})
}
