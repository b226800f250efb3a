package postgres

import "maps"

func init() {
	maps.Copy(statements, map[string]string{"selectBodyTeams": selectBodyTeams, "selectOver": selectOver, "emptyBodies": emptyBodies, "selectFirstBody": selectFirstBody, "lockNames": lockNames})
}
