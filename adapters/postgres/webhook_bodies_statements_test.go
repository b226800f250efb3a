package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{"selectBodyTeams": selectBodyTeams, "emptyBodies": emptyBodies, "selectFirstBody": selectFirstBody, "lockNames": lockNames})
}
