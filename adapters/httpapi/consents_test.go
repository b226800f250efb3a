package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestConsents_areGivenListedAndWithdrawn(t *testing.T) {
	c := newFixture(t, nil)
	path := "/v2/user/" + c.user.String() + "/consent"
	var list struct {
		Consents []struct {
			Provider, Version, Means string
			GrantedAt                *string `json:"granted_at"`
			WithdrawnAt              *string `json:"withdrawn_at"`
		}
	}
	c.get(path, http.StatusOK).JSON(t, &list)
	require.Empty(t, list.Consents)
	c.post(path, object{"provider": "manual", "version": "2", "means": "written"}, http.StatusCreated)
	c.post(path, object{"provider": "manual", "means": "link"}, http.StatusUnprocessableEntity)
	c.post(path, object{"provider": "none_such", "means": "app"}, http.StatusUnprocessableEntity)
	c.post("/v2/user/"+uuid.NewString()+"/consent", object{"provider": "manual", "means": "app"}, http.StatusNotFound)
	c.get(path, http.StatusOK).JSON(t, &list)
	require.Len(t, list.Consents, 1)
	require.Equal(t, "2", list.Consents[0].Version)
	require.Nil(t, list.Consents[0].WithdrawnAt)

	c.post(path, object{"provider": "acme_band", "version": "3", "means": "app"}, http.StatusCreated)
	for range 2 {
		c.Send(t, http.MethodDelete, path+"/acme_band", nil).Want(t, http.StatusOK)
	}
	for path, body := range c.ingestPaths() {
		require.Equal(t, "CONSENT_WITHDRAWN", c.post(path, body, http.StatusBadRequest).ErrorType(t), path)
	}
	c.get(path, http.StatusOK).JSON(t, &list)
	require.Len(t, list.Consents, 2)
	require.NotNil(t, list.Consents[1].WithdrawnAt)
	require.Equal(t, http.StatusNotFound, c.With("x-service-api-key", "other").Send(t, http.MethodGet, path, nil).Status)
	require.Equal(t, http.StatusNotFound, c.With("x-service-api-key", "other").Send(t, http.MethodDelete, path+"/acme_band", nil).Status)
}

func TestConsents_appRecordsThemForItsOwnUser(t *testing.T) {
	c := newFixture(t, nil)
	path := "/v2/user/" + c.user.String() + "/consent"
	app := c.app().With("Authorization", "Bearer "+c.signedIn().AccessToken)
	app.Send(t, http.MethodPost, path, object{"provider": "acme_band", "means": "written"}).Want(t, http.StatusUnprocessableEntity)
	app.Send(t, http.MethodPost, path, object{"provider": "acme_band", "means": "app"}).Want(t, http.StatusCreated)
	app.Send(t, http.MethodDelete, path+"/acme_band", nil).Want(t, http.StatusOK)
	app.Send(t, http.MethodGet, path, nil).Want(t, http.StatusOK)
	app.Send(t, http.MethodGet, "/v2/user/"+uuid.NewString()+"/consent", nil).Want(t, http.StatusNotFound)
}
