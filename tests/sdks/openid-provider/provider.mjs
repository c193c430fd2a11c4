// An OpenID provider without pages: it signs in the user that `login_hint` names, and consents.
// Addresses that begin with `unverified` are not verified. Prints its URL when it is ready.
//
// PORT: the port; by default a free one. CODE_SECONDS: the lifetime of codes.

import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const key = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" });
const client = (name) => ({
  client_id: name,
  client_secret: `secret-of-${name}`,
  redirect_uris: ["https://api.example.com/v0/sign-in/oidc/callback"],
  id_token_signed_response_alg: "ES256",
});

const server = createServer();
await new Promise((resolve) => server.listen(Number(process.env.PORT ?? 0), "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [client("waymark-console"), client("another-client")],
  jwks: { keys: [{ ...key, kid: randomUUID(), use: "sig", alg: "ES256" }] },
  cookies: { keys: [randomUUID()] },
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  features: { devInteractions: { enabled: false }, claimsParameter: { enabled: true } },
  pkce: { required: () => true },
  ttl: { AuthorizationCode: Number(process.env.CODE_SECONDS ?? 60) },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, email) => ({
    accountId: email,
    claims: () => ({ sub: email, email, email_verified: !email.startsWith("unverified") }),
  }),
});

provider.use(async (context, next) => {
  if (!context.path.startsWith("/interaction/")) return next();
  const { params } = await provider.interactionDetails(context.req, context.res);
  const grant = new provider.Grant({ accountId: params.login_hint, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  grant.addOIDCClaims(["email", "email_verified"]);
  const result = { login: { accountId: params.login_hint }, consent: { grantId: await grant.save() } };
  await provider.interactionFinished(context.req, context.res, result);
  context.respond = false;
});

server.on("request", provider.callback());
console.log(issuer);
