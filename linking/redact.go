package linking

import "log/slog"

// The values of a sign-in hold secrets and names of people. Code that prints or logs one
// of these values learns which flow it belongs to, and no more.

// LogValue shows no value.
func (r AuthorizeRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String shows no value.
func (r AuthorizeRequest) String() string { return "authorize request" }

// GoString is String.
func (r AuthorizeRequest) GoString() string { return r.String() }

// LogValue shows no value.
func (r ExchangeRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String shows no value.
func (r ExchangeRequest) String() string { return "exchange request" }

// GoString is String.
func (r ExchangeRequest) GoString() string { return r.String() }

// LogValue shows no value.
func (r PasswordRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String shows no value.
func (r PasswordRequest) String() string { return "password sign-in" }

// GoString is String.
func (r PasswordRequest) GoString() string { return r.String() }

// LogValue shows no value.
func (r MFARequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String shows no value.
func (r MFARequest) String() string { return "sign-in code" }

// GoString is String.
func (r MFARequest) GoString() string { return r.String() }

// LogValue shows no value.
func (r EmailRequest) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String shows no value.
func (r EmailRequest) String() string { return "e-mail sign-in" }

// GoString is String.
func (r EmailRequest) GoString() string { return r.String() }

// LogValue shows no value.
func (s PasswordResponse) LogValue() slog.Value { return slog.StringValue(s.String()) }

// String shows no value.
func (s PasswordResponse) String() string { return "answer to a password" }

// GoString is String.
func (s PasswordResponse) GoString() string { return s.String() }

// LogValue shows no value.
func (c Challenge) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String shows no value.
func (c Challenge) String() string { return "challenge by " + c.Method }

// GoString is String.
func (c Challenge) GoString() string { return c.String() }

// LogValue shows no value.
func (g Grant) LogValue() slog.Value { return slog.StringValue(g.String()) }

// String shows no value.
func (g Grant) String() string { return "grant" }

// GoString is String.
func (g Grant) GoString() string { return g.String() }

// LogValue shows no value.
func (p PasswordSignIn) LogValue() slog.Value { return slog.StringValue(p.String()) }

// String shows no value.
func (p PasswordSignIn) String() string { return "sign-in at " + p.Provider }

// GoString is String.
func (p PasswordSignIn) GoString() string { return p.String() }

// LogValue shows no value.
func (e EmailSignIn) LogValue() slog.Value { return slog.StringValue(e.String()) }

// String shows no value.
func (e EmailSignIn) String() string { return "sign-in at " + e.Provider }

// GoString is String.
func (e EmailSignIn) GoString() string { return e.String() }

// LogValue shows no value.
func (d OAuthSignIn) LogValue() slog.Value { return slog.StringValue(d.String()) }

// String shows no value.
func (d OAuthSignIn) String() string { return "sign-in at " + d.Provider }

// GoString is String.
func (d OAuthSignIn) GoString() string { return d.String() }

// LogValue shows no value.
func (c Callback) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String shows no value.
func (c Callback) String() string { return "callback of " + c.Provider }

// GoString is String.
func (c Callback) GoString() string { return c.String() }

// LogValue shows no value.
func (a Authorization) LogValue() slog.Value { return slog.StringValue(a.String()) }

// String shows no value.
func (a Authorization) String() string { return "authorization at " + a.Provider.Slug }

// GoString is String.
func (a Authorization) GoString() string { return a.String() }

// LogValue shows no value.
func (r Result) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String shows no value.
func (r Result) String() string { return "link result " + r.State + " " + string(r.Error) }

// GoString is String.
func (r Result) GoString() string { return r.String() }

// LogValue shows no value.
func (r Renewal) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String shows no value.
func (r Renewal) String() string { return "renewed secret" }

// GoString is String.
func (r Renewal) GoString() string { return r.String() }

// LogValue shows no value.
func (a GrantSecret) LogValue() slog.Value { return slog.StringValue(a.String()) }

// String shows no value.
func (a GrantSecret) String() string { return "secret of a connection" }

// GoString is String.
func (a GrantSecret) GoString() string { return a.String() }
