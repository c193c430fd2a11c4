// Renders openapi.yaml into one self-contained page: node render.mjs openapi.yaml page.html
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import swaggerUi from "swagger-ui-dist";
import { parse } from "yaml";

const [description, page] = process.argv.slice(2);
const file = (name) => readFileSync(join(swaggerUi.getAbsoluteFSPath(), name), "utf8");
// Only these sequences end a script or begin a comment. In JSON and JavaScript strings, an escaped
// slash or `<` has the same meaning.
const inScript = (text) => text.replaceAll("</script", "<\\/script").replaceAll("<!--", "\\x3c!--");
const inJson = (value) => JSON.stringify(value).replaceAll("<", "\\u003c");
const spec = parse(readFileSync(description, "utf8"), { maxAliasCount: -1 });
const title = `${spec.info.title} ${spec.info.version}`;

// The policy prevents the page from loading resources. Requests are allowed, because the page can send
// those that it describes.
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
