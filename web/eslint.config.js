import tseslint from "typescript-eslint";

const noMarkup =
  "Text reaches the page only as text nodes: what is shown comes from models and sandboxes.";

export default tseslint.config(
  { ignores: ["node_modules", "src/model/answers.ts"] },
  ...tseslint.configs.strict,
  {
    rules: {
      "@typescript-eslint/no-non-null-assertion": "off", // typed arrays read inside their bounds
      "@typescript-eslint/no-invalid-void-type": "off",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "insertAdjacentHTML", "srcdoc"].map((property) => ({
          property,
          message: noMarkup,
        })),
        { object: "document", property: "write", message: noMarkup },
      ],
      "no-restricted-syntax": [
        "error",
        {
          selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']",
          message: noMarkup,
        },
      ],
    },
  },
);
