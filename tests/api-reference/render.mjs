// Renders openapi.yaml into one page that needs nothing else: node render.mjs openapi.yaml page.html
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import swaggerUi from "swagger-ui-dist";
import { parse } from "yaml";

const [description, page] = process.argv.slice(2);
const file = (name) => readFileSync(join(swaggerUi.getAbsoluteFSPath(), name), "utf8");
// Within a script, only these end it or begin a comment; in JSON and JavaScript texts, an escaped
// slash or `<` means the same.
const inScript = (text) => text.replaceAll("</script", "<\\/script").replaceAll("<!--", "\\x3c!--");
const inJson = (value) => JSON.stringify(value).replaceAll("<", "\\u003c");
const spec = parse(readFileSync(description, "utf8"), { maxAliasCount: -1 });
const title = `${spec.info.title} ${spec.info.version}`;

// The policy keeps the page from loading anything. Requests are allowed: it can send those that it
// describes.
const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
  + "img-src data:; connect-src *";

mkdirSync(dirname(page), { recursive: true });
writeFileSync(page, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="content-security-policy" content="${policy}">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>${file("swagger-ui.css")}</style>
</head>
<body>
<main id="reference"></main>
<script>${inScript(file("swagger-ui-bundle.js"))}</script>
<script>
SwaggerUIBundle({
  spec: ${inJson(spec)},
  dom_id: "#reference",
  deepLinking: true,
  displayOperationId: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: false,
  validatorUrl: null,
});
</script>
</body>
</html>
`);
console.log(`${page} shows ${title}`);
