// Package linking connects a person's accounts to a user: once, on a phone or in a
// browser, and never to another person's user.
//
// Two things are handed out. A link code is typed or deep-linked into a companion app
// and binds the app to one user ([Service.CreateCode], [Service.Redeem]). A link token
// opens the link pages, or a customer's own, for one user, one hour and one successful
// connection ([Service.CreateToken]); failed tries do not use it up.
//
// Behind a token stands a [Session], whose life is a table of states. A flow asks the
// provider through a [ProviderConnector] and then writes once: the connection, its
// event, the sealed credential and the end of the token are one step of the [Store], so
// nothing is ever half connected.
//
//	issued, err := service.CreateToken(ctx, team, linking.NewToken{User: user})
//	result, err := service.SignIn(ctx, issued.Token, linking.PasswordSignIn{Provider: "acme_scale", …})
//
// A companion app acts for one user with tokens of its own ([Apps]): a team's server asks
// for a sign-in token, the app exchanges it once, and refreshes what it got.
//
// Names to know: [Service], [Store], [ProviderConnector], [Session], [Error]. What
// fails in front of a person has one of the link error types ([ErrorType]) and travels
// in a [Result] or in the query of the customer's redirect URL ([Outcome.Redirect]).
//
// # Whose browser it is
//
// An attacker who begins a sign-in at a provider's own page and makes another person finish it would get
// that person's data. So the link pages give a browser a secret ([Service.NewBrowserSecret], in a
// cookie), hand it over when the person leaves ([OAuthSignIn]) and again when they come back
// ([Callback]); a callback in another browser ends the try, and connects nothing.
//
// A customer's own widget asks for the address of the sign-in page by itself, and no browser
// shows us anything before it comes back. Its callbacks are good in any browser, once, and
// for the hour of the token. So a widget keeps the link token in the session of the person
// whom it was made for, gives it to no other, opens the address at that person's click,
// and believes a redirect only if the person had left. A team that has no such widget sets
// [TeamSettings].PagesOnly, and what does not begin on the link pages is refused.
//
// Neither helps a person who opens an invitation that another person sent: the pages name
// the team and what it will read before they connect anything, but where a token names an
// OAuth provider the person goes straight there.
//
// # How hard guessing is
//
// A link token carries 256 random bits; guessing one is hopeless. A link code has 32
// (its shape is given), so limits do the work, and only wrong tries count:
//
//   - One client has [MaxWrongPerClient] = 20 wrong tries an hour. Windows begin with a
//     wrong try, so two of them can touch one hour: at most 40 guesses at a code that
//     lives an hour, 40 / 2^32 = 9.3e-9.
//   - For a code, [MaxWrongPerCode] = 4,000 wrong tries at its team's codes are looked at, by
//     whomever: 4,000 / 2^32 = 9.3e-7, however long it is to live, however many clients
//     there are. 2,000 of them are first tries, of clients that have not failed in their
//     window; after those the code is over, as if it had expired. 2,000 are later ones;
//     after those a client that has failed finds no such code.
//
// A companion app names no team ([Service.Exchange]). Its wrong tries are counted for all
// teams together, with the same limits, beside those at the code's team: a code meets at
// most another 4,000 of them.
//
// So people redeem the codes they have while fewer than 2,000 clients attack within the
// hour of a code. Beyond that a team creates a new code, which has counts of its own. With
// 10,000 codes open at a time, one client hits any of them with 40 * 10,000 / 2^32 = 9.3e-5
// within the hour, and all clients together with 4,000 * 10,000 / 2^32 = 9.3e-3 before
// those codes are over. A code that is good for the longest time, seven days, meets at most
// 168 first tries of one client and 2,000 later ones: 2,168 guesses, 5.0e-7.
//
// This package speaks no HTTP. It does not fetch health data, and it knows no
// provider: which there are is configuration, and how to talk to one is an adapter.
package linking
